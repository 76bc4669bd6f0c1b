/**
 * The benchmark's command: reads the arguments, opens a server, measures the bench as often as
 * asked, each time in a new database, and prints the result. Ends with code 0, 1 if something
 * failed, 2 if the arguments are wrong; it always removes the databases and processes that it made.
 */

import { availableParallelism } from "node:os";
import { type BenchOptions, parseArguments, usage, UsageError } from "./arguments.js";
import type { Bench, BenchName, Figure } from "./bench.js";
import { across } from "./across.js";
import { children } from "./children.js";
import { jobs } from "./jobs.js";
import { keys } from "./keys.js";
import { latency } from "./latency.js";
import { limits } from "./limits.js";
import { list } from "./list.js";
import { machines } from "./machines.js";
import { others } from "./others.js";
import { plans } from "./plans.js";
import { Profiling } from "./profiling.js";
import { dashboard } from "./dashboard.js";
import { counting } from "./counting.js";
import { restStarts } from "./rest.js";
import { queues } from "./queues.js";
import { summarize, toJson, toTable } from "./report.js";
import { type BenchServer, openServer } from "./server.js";
import { remote } from "./remote.js";
import { redrive } from "./redrive.js";
import { scale } from "./scale.js";
import { schedules } from "./schedules.js";
import { signals } from "./signals.js";
import { sleepers } from "./sleepers.js";
import { sustained } from "./sustained.js";
import { timers } from "./timers.js";
import { workflows } from "./workflows.js";

const benches: Record<BenchName, Bench> = {
  jobs,
  machines,
  workflows,
  sleepers,
  latency,
  signals,
  timers,
  schedules,
  keys,
  children,
  redrive,
  limits,
  across,
  others,
  remote,
  counting,
  server: restStarts,
  queues,
  scale,
  sustained,
  list,
  dashboard,
  plans,
};

async function main(): Promise<void> {
  const options = parseArguments(process.argv.slice(2));
  if (options === null) {
    console.log(usage);
    return;
  }
  const server = await openServer(options.profile !== undefined);
  const interruption = new AbortController();
  const interrupt = (): void => {
    interruption.abort(new Error("interrupted"));
    void server.close().finally(() => process.exit(130));
  };
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    await run(options, server, interruption.signal);
  } finally {
    await server.close();
  }
}

async function run(options: BenchOptions, server: BenchServer, signal: AbortSignal): Promise<void> {
  const { bench: name, repeat } = options;
  const bench = benches[name];
  const count = options.count ?? (options.quick ? bench.defaults.quickCount : bench.defaults.count);
  const concurrency = options.concurrency ?? bench.defaults.concurrency;
  console.log(
    `bench ${name}: count ${count}, worker concurrency ${concurrency}, measured ${repeat === 1 ? "once" : `${repeat} times`}`,
  );
  console.log(
    `Node.js ${process.versions.node}, ${availableParallelism()} cores; Postgres: ${server.description}\n`,
  );

  const repeats: Figure[][] = [];
  for (let turn = 1; turn <= repeat; turn++) {
    const database = await server.createDatabase();
    const profiling = new Profiling(options.profile, name);
    repeats.push(
      await bench.measure({
        database,
        count,
        concurrency,
        quick: options.quick,
        part: options.part,
        minutes: options.minutes,
        profiling,
        signal,
      }),
    );
    await server.dropDatabase(database);
    for (const line of profiling.report()) console.log(line);
  }
  const summaries = summarize(repeats);
  console.log(toTable(summaries, repeat));
  if (options.json) console.log(toJson(name, summaries));
}

try {
  await main();
} catch (error) {
  if (error instanceof UsageError) {
    console.error(`${error.message}\n\n${usage}`);
    process.exitCode = 2;
  } else {
    console.error(error);
    process.exitCode = 1;
  }
}
