/**
 * Inserts runs by SQL, in the shape that `start` and the engine leave them in, so that a million
 * takes seconds. Used by `scale`, `list` and `dashboard`, where the number of rows matters.
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

/** How many definitions the mixed runs have. */
export const mixedNames = 20;

/** Runs of every status, kind and age. Sets the search path of the session. */
export async function fillMixed(observer: pg.Client, count: number): Promise<void> {
  await observer.query("set search_path = pawl, public");
  // Twenty definitions; most runs are done, one of a hundred has failed, with one of ten codes,
  // as many were cancelled, and wait.
  await observer.query(
    `insert into runs (id, status, priority, eligible_at, inserted_at, completed_at, expires_at, retention, queue, kind, name, version,
       input, result, error, parent_id, child_of, position)
     select nextval('run_ids') << 6,
       (case when n % 100 = 7 then 'failed' when n % 100 = 11 then 'cancelled' when n % 100 = 13 then 'runnable'
         when n % 100 = 17 then 'awaiting_signal' else 'done' end)::run_status,
       0, t.at, t.at, t.at, t.at + interval '30 days', '30 days', 'queue-' || n % 5,
       case when n % ${mixedNames} = 3 then 'machine' when n % ${mixedNames} = 5 then 'workflow' else 'job' end, 'name-' || n % ${mixedNames}, 1,
       jsonb_build_object('n', n), '1',
       case when n % 100 = 7 then jsonb_build_object('name', 'Error', 'code', 'E_' || n % 1000 / 100, 'message', 'no') end,
       case when n % 50 = 0 then 64 end, case when n % 50 = 0 then n / 5000 end, case when n % 50 = 0 then n % 5000 end
     from generate_series(1, $1::int) n, lateral (select clock_timestamp() - ($1 - n) * interval '100 milliseconds' as at) t
     where n % 50 <> 0 or n < 5000`,
    [count],
  );
  await observer.query("vacuum analyze runs");
}

/**
 * Writes the inserted rows to disk, analyses and vacuums them, so that this does not disturb the
 * measurement.
 */
export async function settle(observer: pg.Client): Promise<void> {
  await observer.query("vacuum analyze pawl.runs");
  await observer.query("checkpoint");
}
