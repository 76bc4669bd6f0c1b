/** Writes the results into `bench/results`: all figures as JSON, and the chart. */

import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const directory = fileURLToPath(new URL("../../results/", import.meta.url));

/** The paths of both, from the root of the repository. */
export function writeResults(date: string, results: object, svg: string): string[] {
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${directory}peers-${date}.json`, `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(`${directory}peers-${date}.svg`, svg);
  return ["json", "svg"].map((ending) => `bench/results/peers-${date}.${ending}`);
}
