/**
 * `limits`: how exactly four worker processes together keep one rate limit while there is always
 * work. A trigger notes two times for every claim: the time by which the engine decided it (that of
 * its bucket, written in the same transaction), and the time of the write. By the first, no window
 * may hold more than burst + rate · t. By the second it may, since claims decided apart can be
 * written close together.
 */

import { connect } from "pawl";
import type pg from "pg";
import { UsageError } from "./arguments.js";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob } from "./definitions.js";
import { startInBatches } from "./enqueue.js";
import { share } from "./figures.js";
import { until } from "./observe.js";
import { startWorker, type WorkerProcess } from "./worker-process.js";

const workerProcesses = 4;
const perSecond = 200;
const burst = 200;
/** More runs than the limit admits, so that the limit ends the window. */
const surplus = 1.2;

export const limits: Bench = {
  defaults: { count: 2_200, quickCount: 800, concurrency: 100 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const seconds = (request.count - burst) / perSecond;
    if (seconds < 1) throw new UsageError(`limits takes a --count of at least ${burst + perSecond}`);
    const { decided, written } = await claimTimes(request, seconds);
    const times = decided.filter((time) => time <= seconds);
    const later = times.filter((time) => time > seconds / 2);
    return [
      { key: "claims", label: `claims in ${seconds} s`, value: times.length, unit: "" },
      share("accuracy_percent", "of burst + rate · t", times.length, request.count),
      share("later_percent", "of rate · t in the second half", later.length, (perSecond * seconds) / 2),
      {
        key: "excess",
        label: "most above burst + rate · t in any window",
        value: excess(decided),
        unit: "runs",
      },
      { key: "excess_written", label: "… by the time of writing", value: excess(written), unit: "runs" },
    ];
  },
};

interface ClaimTimes {
  /** In order, in seconds since the first. */
  readonly decided: readonly number[];
  readonly written: readonly number[];
}

async function claimTimes(request: BenchRequest, seconds: number): Promise<ClaimTimes> {
  const { database, count, concurrency, profiling, signal } = request;
  const { observer } = database;
  const pawl = connect(database.url);
  await pawl.limits.set("bench", { allowed: perSecond, period: "1s", burst });
  await noteClaims(observer);
  const all = Math.ceil(count * surplus);
  await startInBatches(pawl, noOpJob(), all, () => ({ input, rateLimit: "bench" }));
  await pawl.close();

  const order = {
    database,
    definition: "job",
    concurrency,
    expected: all,
    profilePath: undefined,
    signal,
  } as const;
  const workers: WorkerProcess[] = [];
  try {
    return await profiling.server("limited", database, async () => {
      const starts = Array.from({ length: workerProcesses }, () => startWorker(order));
      for (const start of await Promise.allSettled(starts)) {
        if (start.status === "rejected") throw start.reason;
        workers.push(start.value);
      }
      let decided: number[] = [];
      await until(async () => {
        decided = await notedClaims(observer, "decided_at");
        return (decided.at(-1) ?? 0) > seconds || decided.length === all;
      }, workers[0]!.deadline);
      return { decided, written: await notedClaims(observer, "written_at") };
    });
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

async function noteClaims(observer: pg.Client): Promise<void> {
  await observer.query(`
    create table claims (decided_at timestamptz not null, written_at timestamptz not null);
    create function note_claim() returns trigger language plpgsql as $$
    begin
      insert into public.claims select b.updated_at, clock_timestamp() from pawl.buckets b where b.name = 'bench';
      return null;
    end $$;
    create trigger note_claim after update of status on pawl.runs for each row
      when (new.status = 'executing' and old.status <> 'executing') execute function note_claim()`);
}

async function notedClaims(observer: pg.Client, column: "decided_at" | "written_at"): Promise<number[]> {
  const { rows } = await observer.query<{ seconds: number }>(
    `select extract(epoch from c.${column} - (select min(f.${column}) from claims f))::float8 as seconds
     from claims c order by c.${column}`,
  );
  return rows.map(({ seconds }) => seconds);
}

/** The largest number of claims above the limit in any window; 0 if none. */
function excess(times: readonly number[]): number {
  let most = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, time] of times.entries()) {
    // Over a window from claim i to claim j: (j - i + 1) - burst - rate · (time j - time i).
    least = Math.min(least, index - perSecond * time);
    most = Math.max(most, index + 1 - perSecond * time - least - burst);
  }
  return most;
}
