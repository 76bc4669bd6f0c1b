import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { nodes, plansOf } from "../../support/plans.js";

const database = await testDatabase();
const { sql } = database;

const insert = `insert into schedules (name, run, every_ms, time_zone, jitter_ms, offset_ms, overlap, catch_up, set_at, next_at, due_at)
  select 's-' || n, '{"name": "work", "version": 1, "kind": "job", "queue": "default", "input": "1"}', 86400000, 'UTC', 0, 0, 'skip', 'last',
    clock(), d.at, d.at from generate_series(1, 100000) n
  cross join lateral (select timestamptz '2100-01-01' + n * interval '1 second' as at) d`;

const tick = "2000-01-01T00:00:00Z";
const fire = (name: string): string =>
  `select * from fire_schedules('[{"name": "${name}", "expected": "${tick}", "ticks": ["${tick}"], "next": "2101-01-01T00:00:00Z"}]')`;

it("polls and fires a few of 100,000 schedules by their index, also with plans made on an empty table", async () => {
  const client = await database.connect();
  const calls = ["select * from due_schedules(100, 0)", fire("s-1"), fire("s-2")];
  // Generic plans, made before there is anything.
  for (let n = 0; n < 6; n++) for (const call of calls) await client.query(call);
  await sql(insert);
  await sql("update schedules set next_at = $1, due_at = $1 where name in ('s-1', 's-2', 's-3')", [tick]);
  const fired = await plansOf(client, calls);
  await sql("update schedules set due_at = null where due_at < clock()");
  const idle = await plansOf(client, ["select * from due_schedules(100, 0)"]);
  expect(
    await sql("select from runs where idempotency_key = 'schedule/s-1/2000-01-01T00:00:00.000Z'"),
  ).toHaveLength(1);
  const reads = [...fired, ...idle]
    .flatMap((plan) => [...nodes(plan)])
    .filter((node) => node["Relation Name"] === "schedules" && /Scan/.test(node["Node Type"]));
  expect(reads.length).toBeGreaterThan(4);
  for (const node of reads) {
    expect(node["Node Type"]).toMatch(/^Index/);
    expect(node["Actual Rows"] ?? 0).toBeLessThan(5);
    expect(node["Rows Removed by Filter"] ?? 0).toBeLessThan(5);
  }
});
