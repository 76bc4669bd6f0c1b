/**
 * The cost of a claim on an empty table, and beside very many runs that are not due. Half of these
 * wait for a signal, half start within the next month, all in the claimed queue. Calls the engine's
 * function on one connection, once with nothing to claim and once with ten runs. Used by `timers`.
 */

import { performance } from "node:perf_hooks";
import type pg from "pg";
import type { BenchRequest, Figure } from "./bench.js";
import { percentile } from "./statistics.js";

const claimsTimed = { usual: 1_000, quick: 200, warmUp: 50 };
const runsPerClaim = 10;
const batch = 50_000;
const worker = "bench-claims";

interface ClaimCost {
  readonly nothingMs: number;
  readonly tenMs: number;
}

export async function measureClaims({ database, quick }: BenchRequest, notDue: number): Promise<Figure[]> {
  const { observer } = database;
  await observer.query(
    `insert into pawl.workers (id, lease, serves, queues, registered_at, seen_at)
     values ($1, '1 hour', '{bench-job@1}', '{default}', clock_timestamp(), clock_timestamp())`,
    [worker],
  );
  const times = quick ? claimsTimed.quick : claimsTimed.usual;
  const empty = await costOfClaims(observer, times);
  await insertNotDue(observer, notDue);
  const beside = await costOfClaims(observer, times);
  return [
    {
      key: "claim_nothing_ms",
      label: "a claim that finds nothing, empty table",
      value: empty.nothingMs,
      unit: "ms",
    },
    {
      key: "claim_nothing_beside_ms",
      label: `… beside ${notDue} not due`,
      value: beside.nothingMs,
      unit: "ms",
    },
    {
      key: "claim_nothing_growth",
      label: "… as a ratio",
      value: beside.nothingMs / empty.nothingMs,
      unit: "×",
    },
    { key: "claim_ten_ms", label: "a claim of ten runs, empty table", value: empty.tenMs, unit: "ms" },
    { key: "claim_ten_beside_ms", label: `… beside ${notDue} not due`, value: beside.tenMs, unit: "ms" },
    { key: "claim_ten_growth", label: "… as a ratio", value: beside.tenMs / empty.tenMs, unit: "×" },
  ];
}

async function costOfClaims(observer: pg.Client, times: number): Promise<ClaimCost> {
  await observer.query("vacuum analyze pawl.runs");
  for (let time = 0; time < claimsTimed.warmUp; time++) await timeClaim(observer, 0);
  const nothingMs: number[] = [];
  const tenMs: number[] = [];
  for (let time = 0; time < times; time++) {
    nothingMs.push(await timeClaim(observer, 0));
    await insertRuns(observer, runsPerClaim, `'runnable', clock_timestamp()`);
    tenMs.push(await timeClaim(observer, runsPerClaim));
    await observer.query("delete from pawl.runs where locked_by = $1", [worker]);
  }
  return { nothingMs: percentile(nothingMs, 50), tenMs: percentile(tenMs, 50) };
}

async function timeClaim(observer: pg.Client, expected: number): Promise<number> {
  const beginMs = performance.now();
  const { rows } = await observer.query({
    name: "claim",
    text: `select c.id from pawl.claim('default', $1, $2, $3, '{bench-job}', '{1}',
             null, null) c`,
    values: [worker, 4711, runsPerClaim],
  });
  const tookMs = performance.now() - beginMs;
  // The last row tells the claimer when to claim again.
  if (rows.length - 1 !== expected) throw new Error(`${rows.length - 1} runs were claimed, not ${expected}`);
  return tookMs;
}

async function insertNotDue(observer: pg.Client, count: number): Promise<void> {
  for (let left = count; left > 0; left -= batch) {
    const rows = Math.ceil(Math.min(batch, left) / 2);
    await insertRuns(observer, rows, `'awaiting_signal', 'infinity'`);
    await insertRuns(
      observer,
      rows,
      `'runnable', clock_timestamp() + (1 + random() * 720) * interval '1 hour'`,
    );
  }
}

/** `statusAndTime`: the SQL of the two columns. */
async function insertRuns(observer: pg.Client, rows: number, statusAndTime: string): Promise<void> {
  await observer.query(
    `insert into pawl.runs (status, eligible_at, id, priority, inserted_at, retention, queue, kind, name, input)
     select ${statusAndTime}, nextval('pawl.run_ids') << 6, 0, clock_timestamp(), '30 days', 'default', 'job',
       'bench-job', '{"orderId": 4711}'
     from generate_series(1, $1::int)`,
    [rows],
  );
}
