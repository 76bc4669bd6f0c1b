/**
 * How many rows of all tables together a run may write, by the server's own count of rows inserted, updated and deleted. The
 * tables in which a worker keeps its registration, its lease and the counts of each minute do not count: no run writes them.
 */

import { connect, job, serve } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { proxyTo } from "../support/proxies/proxy.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { sql } = database;
const elsewhere = await proxyTo(database.url);

const single = job({ name: "single", run: (_ctx, _input: { n: number }) => "done" });

/** Rows written to any table so far. Processes count for themselves and tell when they end: so all must have. */
async function rowsWritten(): Promise<Record<string, number>> {
  await until("all sessions of the engine are gone", async () => {
    const [row] = await sql<{ n: number }>(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name = 'pawl'",
    );
    return row!.n === 0;
  });
  const rows = await sql<{ name: string; n: number }>(
    `select relname as name, (n_tup_ins + n_tup_upd + n_tup_del)::int as n from pg_stat_user_tables where schemaname = 'pawl'`,
  );
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
}

const ofWorkers = ["workers", "definitions", "settings", "series", "failures", "series_cursor"];

/** The rows that runs write during a whole life of a client and a worker (reached at this URL), by table. */
async function writesOf(
  workerUrl: string,
  work: (start: (count: number) => Promise<void>) => Promise<void>,
): Promise<{ total: number; tables: Record<string, number> }> {
  const before = await rowsWritten();
  const worker = serve([single], { url: workerUrl, logger: silent });
  await worker.ready;
  const pawl = connect(database.url);
  await work(async (count) => {
    const inputs = Array.from({ length: count }, (_, n) => ({ input: { n } }));
    const started = await pawl.startMany(single, inputs);
    await Promise.all(started.map(({ runId }) => pawl.result(runId)));
  });
  await pawl.close();
  await worker.stop();
  const after = await rowsWritten();
  const tables = Object.fromEntries(
    Object.entries(after)
      .filter(([table]) => !ofWorkers.includes(table))
      .map(([table, n]) => [table, n - (before[table] ?? 0)]),
  );
  return { total: Object.values(tables).reduce((sum, n) => sum + n, 0), tables };
}

const layouts = [
  { where: "that another process serves", url: elsewhere.url, most: 3 },
  { where: "that its own process serves at once", url: database.url, most: 2 },
];

for (const { where, url, most } of layouts) {
  it(`a job ${where} writes at most ${most} rows, alone`, async () => {
    const alone = 20;
    const { total, tables } = await writesOf(url, async (start) => {
      for (let n = 0; n < alone; n++) await start(1);
    });
    expect(total, JSON.stringify(tables)).toBeLessThanOrEqual(most * alone);
    expect(tables["runs"]).toBeGreaterThanOrEqual(2 * alone);
  });
}

it("a job among many that are started and executed together writes at most 3 rows", async () => {
  const together = 500;
  const { total, tables } = await writesOf(elsewhere.url, (start) => start(together));
  expect(total, JSON.stringify(tables)).toBeLessThanOrEqual(3 * together);
  expect(tables["runs"]).toBeGreaterThanOrEqual(2 * together);
});

it("a tick of a schedule writes two rows: its run, and the schedule", async () => {
  const ticks = 50;
  const pawl = connect(database.url);
  const names = Array.from({ length: ticks }, (_, n) => `tick-${n}`);
  for (const name of names) await pawl.schedules.set(name, { every: "1d", start: single, input: { n: 1 } });
  await pawl.close();
  const [at, next] = ["2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"];
  const items = names.map((name) => ({ name, expected: at, ticks: [at], next }));
  const client = await database.connect();
  await client.query("begin");
  await client.query("update schedules set next_at = $1, due_at = $1", [at]);
  const written = async (): Promise<Record<string, number>> => {
    const { rows } = await client.query<{ name: string; n: number }>(
      "select relname as name, (n_tup_ins + n_tup_upd + n_tup_del)::int as n from pg_stat_xact_user_tables where schemaname = 'pawl'",
    );
    return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
  };
  const before = await written();
  const { rows: fired } = await client.query<{ verdict: string }>("select * from fire_schedules($1)", [
    JSON.stringify(items),
  ]);
  const after = await written();
  await client.query("rollback");
  expect(new Set(fired.map(({ verdict }) => verdict))).toEqual(new Set(["fired"]));
  const grown = Object.entries(after).map(([table, n]) => [table, n - (before[table] ?? 0)] as const);
  expect(Object.fromEntries(grown.filter(([, n]) => n > 0))).toEqual({ runs: ticks, schedules: ticks });
});
