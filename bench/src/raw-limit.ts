/**
 * The raw limit: how fast the same server does nothing but the writes. One connection updates 100
 * rows per statement through `unnest`, each statement a durable commit; the table is as wide as a
 * run and has the same fillfactor, but no index beside its primary key. Benches print every rate
 * with this one, measured in the same run, because a rate alone says more about the disk than about
 * the engine.
 */

import { performance } from "node:perf_hooks";
import type pg from "pg";
import { percentile } from "./statistics.js";

const tableRows = 10_000;
const rowsPerStatement = 100;
const measuredMs = 1_500; // twice: before and after the work
const warmUpMs = 300;
const singleCommits = 300;

export interface RawLimit {
  readonly rowsPerSecond: number;
  /** The median of a one-row update on the same connection: the price of one durable commit. */
  readonly commitMs: number;
}

/**
 * Does the work between two measurements and answers with their mean: a machine is not as fast at
 * every moment.
 */
export async function besideLimit<T>(
  client: pg.Client,
  quick: boolean,
  work: () => Promise<T>,
): Promise<{ limit: RawLimit; result: T }> {
  const before = await measureLimit(client, quick);
  const result = await work();
  const after = await measureLimit(client, quick);
  const limit = {
    rowsPerSecond: (before.rowsPerSecond + after.rowsPerSecond) / 2,
    commitMs: (before.commitMs + after.commitMs) / 2,
  };
  return { limit, result };
}

async function measureLimit(client: pg.Client, quick: boolean): Promise<RawLimit> {
  await createTable(client);
  await updateFor(client, warmUpMs);
  const rowsPerSecond = await updateFor(client, quick ? measuredMs / 3 : measuredMs);
  const commitMs = await medianCommitMs(client);
  await client.query("drop table limit_rows");
  return { rowsPerSecond, commitMs };
}

async function createTable(client: pg.Client): Promise<void> {
  await client.query(`
    create table limit_rows (
      id bigint primary key, turn int not null, status text not null, eligible_at timestamptz not null,
      inserted_at timestamptz not null, retention interval not null, queue text not null, name text not null,
      step text not null, input jsonb not null, state jsonb not null
    ) with (fillfactor = 60, autovacuum_vacuum_cost_delay = 0)`);
  await client.query(
    `insert into limit_rows
     select n, 0, 'executing', now(), now(), '30 days', 'default', 'bench-machine', 'one',
       '{"orderId": 4711, "email": "customer@example.com", "visited": 0}',
       '{"orderId": 4711, "email": "customer@example.com", "visited": 0}'
     from generate_series(1, $1::int) n`,
    [tableRows],
  );
  await client.query("vacuum analyze limit_rows");
}

/**
 * Rides the primary key; no indexed column changes, so the updates are HOT, as the engine's are
 * while it keeps a claim.
 */
async function updateRows(client: pg.Client, first: number, rows: number): Promise<void> {
  const ids = Array.from({ length: rows }, (_, index) => 1 + ((first + index) % tableRows));
  const states = ids.map((id) => `{"orderId": 4711, "email": "customer@example.com", "visited": ${id}}`);
  await client.query({
    name: "limit_rows",
    text: `update limit_rows r set turn = r.turn + 1, step = 'two', state = v.state::jsonb
           from unnest($1::bigint[], $2::text[]) v(id, state) where r.id = v.id`,
    values: [ids, states],
  });
}

async function updateFor(client: pg.Client, durationMs: number): Promise<number> {
  const beginMs = performance.now();
  let rows = 0;
  while (performance.now() - beginMs < durationMs) {
    await updateRows(client, rows, rowsPerStatement);
    rows += rowsPerStatement;
  }
  return rows / ((performance.now() - beginMs) / 1_000);
}

async function medianCommitMs(client: pg.Client): Promise<number> {
  const took: number[] = [];
  for (let commit = 0; commit < singleCommits; commit++) {
    const beginMs = performance.now();
    await updateRows(client, commit, 1);
    took.push(performance.now() - beginMs);
  }
  return percentile(took, 50);
}
