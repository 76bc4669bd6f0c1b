import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { nodes, plansOf } from "../../support/plans.js";

const database = await testDatabase();
const { sql } = database;

const insertRuns = `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at, completed_at, expires_at, awaits)
  select nextval('run_ids') << 6, s.status, 'work-' || n % 10, 'workflow', 'default', 0, k.kept, '{}', 'infinity', t.at, t.ended_at,
    t.ended_at + k.kept, case when s.status = 'awaiting_signal' then '{"names": ["go"]}'::jsonb end
  from generate_series(1, 100000) n
  cross join lateral (select (array['done', 'failed', 'cancelled', 'awaiting_signal'])[n % 4 + 1]::run_status as status) s
  cross join lateral (select (array['30 days', '1 hour', '1 day'])[n % 3 + 1]::interval as kept) k
  cross join lateral (select clock() - (100000 - n) * interval '1 second' as at) i
  cross join lateral (select i.at, case when s.status <> 'awaiting_signal' then i.at end as ended_at) t`;
const insertKeyed = `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at, partition_key, hold)
  select nextval('run_ids') << 6, 'runnable', 'keyed', 'job', 'default', 0, '1 day', '{}', clock(), clock(), 'key-' || n % 500, 1
  from generate_series(1, 20000) n`;
const insertSlots = `insert into slots (run_id, concurrency, slot, queue, name, version, priority, eligible_at)
  select n, 'desk:' || n % 500, n % 2 * n, 'default', 'keyed', 1, 0, clock() from generate_series(1, 20000) n`;
const insertSeries = `insert into series (grain, name, queue, at, started)
  select g.grain, 'work-' || n, 'default', date_trunc('minute', clock()) - i * interval '1 minute', 1
  from (values ('minute'), ('hour')) g(grain), generate_series(1, 20) n, generate_series(1, 1500) i`;

it("the reports and the changes of runs ride their indexes on large tables, also with plans made on empty ones", async () => {
  const client = await database.connect();
  const reads = [
    "select * from read_series('minute', null, null, null, null, null, null)",
    "select * from read_series('minute', null, null, 'work-1', 'default', null, null)",
    "select * from read_series('minute', null, null, null, null, '{work-1}', null)",
    "select * from read_failures(null, null, null, 50)",
    "select * from list_waiting(null, null, null, null, null, null, 50)",
    "select * from list_waiting('work-3', 'other', null, null, null, null, 50)",
    "select * from list_keys(null, null, null, 50)",
    "select * from list_slots('desk', null, null, null, 50)",
    "select * from list_definitions(null, null, null, null, null, 50)",
    "select * from list_workers(null, null, null, 50)",
    "select * from list_changes(null, null, null, null, 100)",
    "select * from list_changes(64, 0, 64, 0, 100)",
    "select * from run_marks('{64,128}')",
  ];
  for (let n = 0; n < 6; n++) for (const call of reads) await client.query(call);
  for (let n = 0; n < 6; n++) await client.query("select recover(1000, true, null)");
  await sql(insertRuns);
  await sql(insertKeyed);
  await sql(insertSlots);
  await sql(insertSeries);
  const recent = "(extract(epoch from clock() - interval '10 seconds') * 1000000)::bigint";
  const calls = [
    ...reads.filter((call) => !call.includes("list_changes(64")),
    `select * from list_changes((nextval('run_ids') << 6) - 640, ${recent}, (nextval('run_ids') << 6) - 640, ${recent}, 100)`,
    "select recover(100, true, null)",
    "select recover(100, true, null)",
  ];
  const plans = await plansOf(client, calls);
  const tables = /^(runs|slots|steps|series|failures)$/;
  const scans = plans
    .flatMap((plan) => [...nodes(plan)])
    .filter((node) => tables.test(node["Relation Name"] ?? "") && /Scan/.test(node["Node Type"]));
  expect(scans.length).toBeGreaterThan(20);
  for (const node of scans) {
    expect(node["Node Type"]).toMatch(/^Index/);
    expect(node["Rows Removed by Filter"] ?? 0).toBeLessThan(1_500);
    expect((node["Actual Rows"] ?? 0) * (node["Actual Loops"] ?? 1)).toBeLessThan(25_000);
  }
});
