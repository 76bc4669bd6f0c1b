/**
 * `npm run bench:peers`: Pawl and its peers side by side, on the same Postgres in one run. Reads
 * the arguments, gets the peers ready, holds the contest, prints and writes the result. Ends with
 * code 0, 1 if something failed, 2 if the arguments are wrong; it always removes the databases and
 * processes that it made.
 */

import { availableParallelism } from "node:os";
import { UsageError } from "../arguments.js";
import { besideLimit } from "../raw-limit.js";
import { type BenchServer, openServer } from "../server.js";
import { parsePeersArguments, type PeersOptions, peersUsage } from "./arguments.js";
import { toSvg } from "./chart.js";
import { hold } from "./contest.js";
import { contestants, leftOut } from "./contestants.js";
import { pinnedVersions, prepare } from "./install.js";
import { ratioOf } from "./ratios.js";
import { type Omission, toJson, toOmissions, toTable } from "./report.js";
import { writeResults } from "./results.js";
import { entriesOf } from "./schedule.js";
import { missing } from "./services.js";

const repetitions = 3;
/** The contest only; preparation and report take some more seconds. */
const budgetMs = { usual: 3_600_000, quick: 200_000 };

const times = (count: number): string => (count === 1 ? "one repetition" : `${count} repetitions`);

async function main(): Promise<void> {
  const options = parsePeersArguments(process.argv.slice(2));
  if (options === null) {
    console.log(peersUsage);
    return;
  }
  prepare();
  const server = await openServer(false);
  const interruption = new AbortController();
  const interrupt = (): void => interruption.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    await run(options, server, interruption.signal);
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
    process.exitCode = 130;
  } finally {
    await server.close();
  }
}

async function run(options: PeersOptions, server: BenchServer, signal: AbortSignal): Promise<void> {
  const { measure: measurements, quick } = options;
  const chosen = contestants.filter(({ name }) => options.only.includes(name));
  const present = chosen.filter(({ storage }) => missing(storage) === undefined);
  const entries = entriesOf(present, measurements);
  const versions = pinnedVersions();
  const about = `Node.js ${versions["node"]}, ${availableParallelism()} cores; Postgres: ${server.description}`;
  console.log(`${about}\n`);

  const observed = await server.createDatabase("empty");
  const { limit, result } = await besideLimit(observed.observer, quick, () =>
    hold({
      server,
      entries,
      repetitions,
      quick,
      budgetMs: quick ? budgetMs.quick : budgetMs.usual,
      signal,
      tell: (line) => console.error(line),
    }),
  );
  const { summaries } = result;
  const omissions: Omission[] = [
    ...leftOut,
    ...chosen.flatMap(({ name, storage }) => {
      const reason = missing(storage);
      return reason === undefined ? [] : [{ name, reason }];
    }),
    ...present.flatMap(({ name, ways }) =>
      measurements.flatMap((measurement) => {
        const way = ways[measurement];
        return typeof way === "string" ? [{ name: `${name}, ${measurement}`, reason: way }] : [];
      }),
    ),
  ];

  const measured = `medians of ${times(result.repetitions)}, least … most`;
  console.log(`\n${measured}\n`);
  for (const measurement of measurements) console.log(`${toTable(summaries, measurement)}\n`);
  console.log(`raw limit of the run: ${Math.round(limit.rowsPerSecond).toLocaleString("en-US")} rows/s`);
  console.log(`\n${toOmissions(omissions)}\n`);

  const date = new Date().toISOString().slice(0, 10);
  const ratios = Object.fromEntries(measurements.map((name) => [name, ratioOf(summaries, name)]));
  const { repetitions: held } = result;
  const results = { date, about, quick, repetitions: held, limit, versions, ratios, summaries, omissions };
  const svg = toSvg(summaries, measurements, {
    title: "Pawl and its peers, one machine, one run",
    subtitle: `${date}; medians of ${times(held)}; ${availableParallelism()} cores, client and servers together${quick ? "; --quick" : ""}`,
  });
  console.log(writeResults(date, results, svg).join("\n"));
  if (options.json) console.log(toJson(summaries, measurements, limit.rowsPerSecond));
}

try {
  await main();
} catch (error) {
  if (error instanceof UsageError) {
    console.error(`${error.message}\n\n${peersUsage}`);
    process.exitCode = 2;
  } else {
    console.error(error);
    process.exitCode = 1;
  }
}
