import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { nodes, plansOf } from "../../support/plans.js";

const database = await testDatabase();
const { sql } = database;

const insertRuns = `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at, completed_at, expires_at)
  select nextval('run_ids') << 6, case when n % 2 = 0 then 'failed'::run_status else 'done'::run_status end, 'work-' || n % 10, 'workflow',
    'default', 0, interval '30 days', '{}', clock(), clock(), clock(), clock() + interval '30 days' from generate_series(1, 100000) n`;
const insertSteps = `insert into steps (run_id, name, kind, seq, output, started_at, completed_at)
  select r.id, 'step-' || n, 'run', n, '1', clock(), clock() from (select id from runs order by id limit 20000) r, generate_series(1, 3) n`;
const insertActions = `insert into actions (at, who, source, action, target)
  select clock(), 'local', 'library', 'runs.cancel', n::text from generate_series(1, 50000) n`;

it("reruns, bulk batches and the action log ride their indexes on large tables, also with plans made on empty ones", async () => {
  const client = await database.connect();
  const ids = "array(select id from generate_series(64, 6400, 64) id)";
  const calls = [
    `select * from rerun(${ids}, null, null, null, null, null, null)`,
    `select * from rerun(${ids}, 'step-2', null, null, null, null, null)`,
    "select * from work_bulk(100)",
    "select * from list_actions(null, null, '7', null, null, null, 100)",
    "select * from list_actions(null, null, null, null, null, null, 100)",
    "select * from read_bulk(null, null, 20)",
    "select * from read_bulk_results(1, null, 0, 100)",
    "select * from get(array[64]::bigint[])",
  ];
  for (let n = 0; n < 6; n++) for (const call of calls) await client.query(call);
  await sql(insertRuns);
  await sql(insertSteps);
  await sql(insertActions);
  const filter = `{"phases": ["failed"], "where": {}}`;
  await sql(`select start_bulk('rerun', '${filter}', '{}', 50000, '{"who": "local", "from": "library"}')`);
  const plans = await plansOf(client, calls);
  const tables = /^(runs|steps|signals|actions|bulk_results)$/;
  const reads = plans
    .flatMap((plan) => [...nodes(plan)])
    .filter((node) => tables.test(node["Relation Name"] ?? "") && /Scan/.test(node["Node Type"]));
  expect(reads.length).toBeGreaterThan(10);
  for (const node of reads) {
    // Lists are planned anew for their filters.
    expect(node["Node Type"]).toMatch(node["Relation Name"] === "actions" ? /Index|Bitmap/ : /^Index/);
    expect(node["Rows Removed by Filter"] ?? 0).toBeLessThan(5_000);
  }
  expect(await sql("select from bulk_results")).toHaveLength(100);
});
