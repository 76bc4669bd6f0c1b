/**
 * Where curves are kept: the figures as JSON and a plot of them, beside each other in
 * `bench/results`.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Plot, toSvg } from "./plot.js";

const directory = new URL("../results/", import.meta.url);

/** Writes `<name>.json` and `<name>.svg`; answers where the plot is. */
export function keepResults(name: string, figures: object, plot: Plot): string {
  mkdirSync(directory, { recursive: true });
  writeFileSync(new URL(`${name}.json`, directory), `${JSON.stringify(figures, null, 2)}\n`);
  const path = new URL(`${name}.svg`, directory);
  writeFileSync(path, toSvg(plot));
  return fileURLToPath(path);
}
