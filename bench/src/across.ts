/**
 * `across`: how long a caller waits if the worker is another process that polls. Measures from the
 * call of `start` to the step and to the result, while runs trickle in, so that the worker polls at
 * its highest rate; with the default poll interval and with longer ones. Then the cost of an idle
 * worker for the database: CPU time of its sessions and statements per second, once its polls have
 * become rare.
 */

import { connect } from "pawl";
import type pg from "pg";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { clockedJob, input, machineMs } from "./definitions.js";
import { commitFigure, percentiles } from "./figures.js";
import { databaseTime } from "./observe.js";
import { besideLimit } from "./raw-limit.js";
import { exactCpuMs } from "./usage.js";
import { startWorker } from "./worker-process.js";

/** The trickle: a start every so often, at random from none to twice of it. */
const meanGapMs = 20;
const warmUpRuns = 100;
/** The looks become rare within four seconds. */
const settleMs = 6_000;
const idleMs = { usual: 30_000, quick: 6_000 };
/** undefined: as it is by default. */
const pollIntervalsMs = [undefined, 10, 20];

export const across: Bench = {
  defaults: { count: 1_000, quickCount: 200, concurrency: 10 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { limit, result } = await besideLimit(observer, request.quick, async () => {
      const figures: Figure[] = [];
      for (const pollMs of pollIntervalsMs) figures.push(...(await trickle(request, pollMs)));
      return figures;
    });
    return [...result, commitFigure(limit), ...(await rest(request))];
  },
};

function worker({ database, concurrency, signal }: BenchRequest, pollMs: number | undefined) {
  return startWorker({
    database,
    definition: "clocked",
    concurrency,
    expected: Number.MAX_SAFE_INTEGER,
    profilePath: undefined,
    options: { pollInterval: pollMs },
    signal,
  });
}

async function trickle(request: BenchRequest, pollMs: number | undefined): Promise<Figure[]> {
  const { database, count, signal } = request;
  const { stop } = await worker(request, pollMs);
  const pawl = connect(database.url);
  const definition = clockedJob();
  const startedMs: number[] = [];
  const enteredMs: number[] = [];
  const endedMs: number[] = [];
  const one = async (isCounted: boolean): Promise<void> => {
    const beginMs = machineMs();
    const { runId } = await pawl.start(definition, input);
    const committedMs = machineMs();
    const { enteredMs: entered } = await pawl.result(runId, { timeout: "30s" });
    if (!isCounted) return;
    startedMs.push(committedMs - beginMs);
    enteredMs.push(entered - beginMs);
    endedMs.push(machineMs() - beginMs);
  };
  try {
    const runs: Promise<void>[] = [];
    for (let run = 0; run < warmUpRuns + count; run++) {
      signal.throwIfAborted();
      runs.push(one(run >= warmUpRuns));
      await pause(Math.random() * 2 * meanGapMs);
    }
    await Promise.all(runs);
  } finally {
    await pawl.close();
    await stop();
  }
  const prefix = pollMs === undefined ? "" : `poll_${pollMs}_`;
  const label = pollMs === undefined ? "" : `poll ${pollMs} ms: `;
  return [
    ...percentiles(`${prefix}started_`, `${label}start committed`, startedMs),
    ...percentiles(`${prefix}entered_`, `${label}start to step entered`, enteredMs),
    ...percentiles(`${prefix}result_`, `${label}start to result`, endedMs),
  ];
}

async function rest(request: BenchRequest): Promise<Figure[]> {
  const { database, quick } = request;
  const { observer } = database;
  const { stop } = await worker(request, undefined);
  try {
    // Flush the statistics of this connection, so that earlier work does not count later.
    await observer.query("select pg_stat_force_next_flush()");
    await pause(settleMs);
    const before = await look(observer, database.postmasterPid !== undefined);
    await pause(quick ? idleMs.quick : idleMs.usual);
    const after = await look(observer, database.postmasterPid !== undefined);
    const seconds = after.at - before.at;
    const cpuMs = before.cpuMs === null || after.cpuMs === null ? null : after.cpuMs - before.cpuMs;
    return [
      {
        key: "idle_postgres_cpu_us_per_s",
        label: "idle worker: Postgres CPU per second",
        value: cpuMs === null ? null : (cpuMs * 1_000) / seconds,
        unit: "µs",
      },
      {
        key: "idle_statements_per_s",
        label: "idle worker: statements per second",
        // One of them was the first look.
        value: (after.transactions - before.transactions - 1) / seconds,
        unit: "/s",
      },
    ];
  } finally {
    await stop();
  }
}

/**
 * The clock, the CPU time of the engine's sessions, and all transactions in this database so far.
 */
async function look(observer: pg.Client, isLocal: boolean) {
  const { rows } = await observer.query<{ transactions: number; pids: number[] }>(
    `select d.xact_commit::float8 as transactions,
       array(select a.pid from pg_stat_activity a where a.datname = d.datname and a.application_name = 'pawl') as pids
     from pg_stat_database d where d.datname = current_database()`,
  );
  const { transactions, pids } = rows[0]!;
  return { transactions, cpuMs: isLocal ? exactCpuMs(pids) : null, at: await databaseTime(observer) };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
