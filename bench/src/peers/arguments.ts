/**
 * The command line of `bench:peers`. A mistake becomes a `UsageError` with the given value and the
 * allowed ones.
 */

import { parseArgs } from "node:util";
import { UsageError } from "../arguments.js";
import { contestants } from "./contestants.js";
import { type Measurement, measurements } from "./protocol.js";

export interface PeersOptions {
  readonly json: boolean;
  readonly quick: boolean;
  /** The names of the contestants. */
  readonly only: readonly string[];
  readonly measure: readonly Measurement[];
}

const names = contestants.map(({ name }) => name);

export const peersUsage = `usage: npm run bench:peers -- [options]

  --json             the last line is one JSON object with the ratios
  --quick            small counts, under four minutes, less exact
  --only a,b         these contestants: ${names.join(", ")}
  --measure a,b      these measurements: ${measurements.join(", ")}
  --help

PAWL_BENCH_DATABASE_URL: measure on this server (in new databases, dropped at the end) instead of a throw-away one.`;

/** The parsed command line; null if it asks for help. */
export function parsePeersArguments(given: readonly string[]): PeersOptions | null {
  const values = read(given);
  if (values.help === true) return null;
  return {
    json: values.json === true,
    quick: values.quick === true,
    only: chosen("only", values.only, names),
    measure: chosen("measure", values.measure, measurements),
  };
}

function read(given: readonly string[]) {
  try {
    return parseArgs({
      args: [...given],
      options: {
        json: { type: "boolean" },
        quick: { type: "boolean" },
        help: { type: "boolean" },
        only: { type: "string" },
        measure: { type: "string" },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Those of the list that were named, in the order of the list; all if none was. */
function chosen<Name extends string>(
  option: string,
  given: string | undefined,
  all: readonly Name[],
): readonly Name[] {
  if (given === undefined) return all;
  const wanted = new Set(given.split(",").map((name) => name.trim()));
  for (const name of wanted) {
    if (!all.some((known) => known === name))
      throw new UsageError(`--${option}: there is no "${name}"; there are ${all.join(", ")}`);
  }
  return all.filter((name) => wanted.has(name));
}
