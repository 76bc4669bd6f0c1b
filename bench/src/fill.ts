/**
 * Inserts runs by SQL, in the shape that `start` and the engine leave them in, so that a million
 * takes seconds. Used by `scale`, where only the number of rows matters.
 */

import type pg from "pg";
import { input } from "./definitions.js";

const batch = 50_000;

/** Runs that may be claimed at once. */
export interface Runnable {
  readonly kind: "job" | "machine" | "workflow";
  /** The n-th run of a batch gets the n-th of these, again and again. */
  readonly names: readonly string[];
  readonly queues: readonly string[];
  readonly input: object;
}

export const plainJobs: Runnable = { kind: "job", names: ["bench-job"], queues: ["default"], input };

/** They come last in the order of claims. */
export async function fillRunnable(observer: pg.Client, runs: Runnable, count: number): Promise<void> {
  for (let left = count; left > 0; left -= batch) {
    await observer.query({
      name: "fill-runnable",
      text: `insert into pawl.runs (id, status, eligible_at, priority, inserted_at, retention, queue, kind, name, input)
             select nextval('pawl.run_ids') << 6, 'runnable', t.at, 0, t.at, '30 days',
               ($2::text[])[1 + n % cardinality($2::text[])], $3, ($4::text[])[1 + n % cardinality($4::text[])], $5::jsonb
             from (select clock_timestamp() as at) t, generate_series(1, $1::int) n`,
      values: [Math.min(left, batch), runs.queues, runs.kind, runs.names, JSON.stringify(runs.input)],
    });
  }
}

/** Jobs that were completed within the last days and are kept. */
export async function fillTerminal(observer: pg.Client, count: number): Promise<void> {
  for (let left = count; left > 0; left -= batch) {
    await observer.query({
      name: "fill-terminal",
      text: `insert into pawl.runs (id, status, eligible_at, priority, inserted_at, completed_at, expires_at, retention,
               turn, claim_id, queue, kind, name, input, result)
             select nextval('pawl.run_ids') << 6, 'done', t.at, 0, t.at, t.at, t.at + interval '30 days', '30 days',
               1, n, 'default', 'job', 'bench-job', $2::jsonb, 'null'
             from generate_series(1, $1::int) n,
               lateral (select clock_timestamp() - ($3 - n) * interval '100 milliseconds' as at) t`,
      values: [Math.min(left, batch), JSON.stringify(input), left],
    });
  }
}

/**
 * Writes the inserted rows to disk, analyses and vacuums them, so that this does not disturb the
 * measurement.
 */
export async function settle(observer: pg.Client): Promise<void> {
  await observer.query("vacuum analyze pawl.runs");
  await observer.query("checkpoint");
}
