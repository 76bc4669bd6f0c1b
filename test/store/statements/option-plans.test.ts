import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { nodes, plansOf } from "../../support/plans.js";

// Deadlines, debounce keys, correlation keys and tags are found by their indexes, however many runs there are.

const { sql, connect } = await testDatabase();

it("no function of start options reads a table of 50,000 runs or tags whole, also with plans made on an empty one", async () => {
  const client = await connect();
  const debounced = (key: string): string => {
    const options = JSON.stringify({ debounce: { key, delayMs: 1_000 } });
    const run = { name: "many", version: 1, kind: "job", queue: "q", input: "2", options };
    return `select * from new_runs('${JSON.stringify([run])}', array[null::bigint], array[null::int], array[null::int])`;
  };
  const list = (more: string): string =>
    `select * from list(null, null, null, null, null, null, null, null, null, null, null, null, 20, '${more}')`;
  const calls = [
    "select * from fail_overdue(1000)",
    "select * from fail_overdue(1, array[64000])",
    "select * from find(null, null, 'key 200', null, 100)",
    "select * from deliver_correlated('key 201', null, 'go', '{}', null, false)",
    list('{"tags": {"customer": "300", "plan": "pro"}}'),
    list('{"tags": {"plan": "pro"}}'),
    list('{"correlationKey": "key 202"}'),
  ];
  // Generic plans, made before there is anything.
  for (let n = 0; n < 6; n++) for (const call of [...calls, debounced(`warm ${n}`)]) await client.query(call);
  await sql(
    `insert into runs (id, status, name, version, kind, queue, priority, retention, input, eligible_at, inserted_at, has_extras)
     select n << 6, case when n % 5 = 0 then 'runnable' else 'done' end::run_status, 'many', 1, 'job', 'q', 0, '1 day', '1', now() + interval '1 day',
       now(), true
     from generate_series(1000, 50999) n`,
  );
  await sql(
    `insert into extras (run_id, name, ended, deadline_at, debounce_key, correlation_key)
     select n << 6, 'many', n % 5 <> 0, case when n % 2 = 0 then now() + interval '1 day' end, case when n % 5 = 0 then 'd' || n end, 'key ' || n / 10
     from generate_series(1000, 50999) n`,
  );
  await sql("insert into tags select n << 6, 'customer', (n / 10)::text from generate_series(1000, 50999) n");
  await sql("insert into tags select n << 6, 'plan', 'pro' from generate_series(1000, 50999) n");
  await sql("analyze runs");
  await sql("analyze extras");
  await sql("analyze tags");
  const plans = await plansOf(client, [...calls, debounced("d1000")]);
  const all = plans.flatMap((plan) => [...nodes(plan)]);
  const whole = all.filter(
    (node) => /^(runs|extras|tags)$/.test(node["Relation Name"] ?? "") && node["Node Type"] === "Seq Scan",
  );
  expect(whole).toEqual([]);
  const removed = all.filter((node) => (node["Rows Removed by Filter"] ?? 0) > 2_000);
  expect(removed).toEqual([]);
  const used = new Set(all.map((node) => node["Index Name"]));
  for (const index of ["extras_deadline", "extras_debounce", "extras_correlated", "tags_listing"]) {
    expect(used).toContain(index);
  }
});
