/**
 * `others`: how long a run takes that another process starts, from start to end, in an empty queue
 * and beside many due runs of a definition that another worker serves. Every other run is urgent.
 * The other runs must not slow it down.
 */

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { serve } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob } from "./definitions.js";
import { percentiles } from "./figures.js";

const crowd = 150_000;
const quickCrowd = 20_000;

export const others: Bench = {
  defaults: { count: 100, quickCount: 20, concurrency: 10 },
  async measure({ database, count, concurrency, quick }: BenchRequest): Promise<Figure[]> {
    const { observer, url } = database;
    const definition = noOpJob();
    const worker = serve([definition], { url, queues: { default: concurrency } });
    try {
      await worker.ready;
      await oneAfterTheOther(observer, definition.name, 10);
      const alone = await oneAfterTheOther(observer, definition.name, count);
      await insertCrowd(observer, quick ? quickCrowd : crowd);
      const beside = await oneAfterTheOther(observer, definition.name, count);
      return [
        ...percentiles("alone_", "in an empty queue", alone),
        ...percentiles("beside_", `beside ${quick ? quickCrowd : crowd} runs that others serve`, beside),
      ];
    } finally {
      await worker.stop();
    }
  },
};

/**
 * Starts by SQL, so that no worker of this process is notified; then waits until the run is done.
 */
async function oneAfterTheOther(observer: pg.Client, name: string, count: number): Promise<number[]> {
  const tookMs: number[] = [];
  for (let run = 0; run < count; run++) {
    const beginMs = performance.now();
    const started = await observer.query<{ id: string }>("select pawl.start($1, $2, priority => $3) as id", [
      name,
      input,
      run % 2 === 0 ? 0 : -1,
    ]);
    const isDone = async (): Promise<boolean> => {
      const { rows } = await observer.query("select from pawl.runs where id = $1 and status = 'done'", [
        started.rows[0]!.id,
      ]);
      return rows.length > 0;
    };
    while (!(await isDone())) await sleep(1);
    tookMs.push(performance.now() - beginMs);
    // The worker polls less often again.
    await sleep(20);
  }
  return tookMs;
}

async function insertCrowd(observer: pg.Client, count: number): Promise<void> {
  await observer.query(
    `insert into pawl.workers (id, lease, serves, queues, registered_at, seen_at)
     values ('elsewhere', '1 day', '{others@1}', '{default}', clock_timestamp(), clock_timestamp())`,
  );
  await observer.query(
    `insert into pawl.runs (id, status, name, queue, priority, kind, eligible_at, inserted_at, retention, input)
     select nextval('pawl.run_ids') << 6, 'runnable', 'others', 'default', 0, 'job', clock_timestamp() - interval '1 hour',
       clock_timestamp(), '1 day', '{}' from generate_series(1, $1::int)`,
    [count],
  );
  await observer.query("vacuum analyze pawl.runs");
}
