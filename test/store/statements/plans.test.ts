import { describe, expect, it } from "vitest";
import { testDatabase, type TestDatabase } from "../../support/database.js";
import { nodes, type Plan, plansOf } from "../../support/plans.js";
import { aRun, register } from "../../support/store.js";

/**
 * The plans inside the functions, as the server itself reports them (auto_explain, nested statements). A plan is
 * right if it touches runs only through an index by equality, and reads few rows.
 */

function problems(plans: Plan[]): string[] {
  const found: string[] = [];
  for (const node of plans.flatMap((plan) => [...nodes(plan)])) {
    if (/^(runs|signals)$/.test(node["Relation Name"] ?? "") && /Seq Scan|Bitmap/.test(node["Node Type"])) {
      found.push(`${node["Node Type"]} on ${node["Relation Name"]}`);
    }
    if (node["Index Name"] === "runs_listing") found.push("runs_listing in a hot function");
    if (/Hash Join|Merge Join/.test(node["Node Type"])) found.push(node["Node Type"]);
    if (node["Index Name"] === "runs_claim" && (node["Actual Loops"] ?? 0) > 20) {
      found.push(`runs_claim searched for each of ${node["Actual Loops"]} rows`);
    }
    if ((node["Rows Removed by Join Filter"] ?? 0) > 2_000) {
      found.push(
        `${node["Node Type"]} removed ${node["Rows Removed by Join Filter"]} rows by its join filter`,
      );
    }
    if ((node["Rows Removed by Filter"] ?? 0) > 2_000) {
      found.push(`${node["Index Name"] ?? node["Node Type"]} removed ${node["Rows Removed by Filter"]} rows`);
    }
  }
  return found;
}

/** The hot functions, with a batch each. */
async function hotCalls(database: TestDatabase): Promise<string[]> {
  await database.sql("delete from workers");
  await register(database, "w");
  const started = async (queue: string): Promise<string> => {
    const runs = Array.from({ length: 50 }, () => aRun({ queue }));
    const ids = await database.store.start(runs, { allOrNothing: true, claim: null });
    return `array[${ids.map(({ runId }) => runId).join(",")}]::bigint[]`;
  };
  const ids = await started("hot");
  const released = await started("hot2");
  const parked = await started("hot3");
  await database.store.setLimit({ name: "api", allowed: 5, periodMs: 1_000, burst: 5, concurrent: null });
  const keyed = Array.from({ length: 50 }, (_, index) => {
    return aRun({
      queue: "keyed",
      partitionKey: `key ${index % 5}`,
      rateLimit: index % 2 === 0 ? "api" : null,
    });
  });
  await database.store.start(keyed, { allOrNothing: true, claim: null });
  await database.store.setLimit({ name: "gpu", allowed: null, periodMs: null, burst: null, concurrent: 3 });
  const slotted = Array.from({ length: 50 }, (_, index) => {
    return aRun({ queue: "slotted", options: { concurrency: `gpu:${index % 5}` }, priority: index % 2 });
  });
  await database.store.start(slotted, { allOrNothing: true, claim: null });
  for (const run of slotted.slice(0, 10))
    await database.store.start([run], { allOrNothing: true, claim: null });
  const all = (value: string): string => `array_fill(${value}, array[50])`;
  const commit = (
    op: string,
    turn: number,
    rest: { ids?: string; parent?: string; key?: string; detail?: string },
  ): string =>
    `select * from commit(${rest.ids ?? parked}, ${all("81::bigint")}, ${all(String(turn))}, ${all(`'${op}'::text`)},
      ${all("'two'::text")}, null, ${op === "done" ? all("'1'::text") : "null"}, null, null, null, null, ${rest.parent ?? "null"},
      ${rest.key ?? "null"}, ${rest.detail === undefined ? "null" : all(`'${rest.detail}'::text`)}, null, null, true)`;
  const oneChild =
    '{"children": [{"name": "counter", "version": 1, "kind": "machine", "queue": "hot4", "input": "{}"}]}';
  const receiveMail = (receipt: number, match: string): string =>
    `select * from receive('mail', ${receipt}, 50, 60000, 10, ${match}, null, null, null)`;
  const claimFrom = (queue: string, claimId: number): string =>
    `select * from claim('${queue}', 'w', ${claimId}, 50, '{counter}', '{1}', null, null)`;
  return [
    "select start_one('(counter,1,machine,hot5,,,,,,once,unique,,key,,,,,,,,)', '{}', true, null, null) from generate_series(1, 2)",
    claimFrom("hot3", 81),
    commit("await", 0, { detail: '{"awaits": {"names": ["go"]}, "shown": []}' }),
    `select * from signal(${parked}, ${all("'go'::text")}, ${all("'{}'::text")}, null, false)`,
    `select * from signal(${parked}, ${all("'stay'::text")}, ${all("'{}'::text")}, ${all("'once'::text")}, true)`,
    `select * from signal(${parked}, ${all("'stay'::text")}, ${all("'{}'::text")}, ${all("'once'::text")}, true)`,
    `select signal_one(id, 'stay', '{}', null, 'w', '{hot3}', 88, true) from unnest(${parked}) id`,
    claimFrom("hot3", 81),
    `select inbox(id, 0, 3) from unnest(${parked}) id`,
    commit("keep", 0, { detail: '{"consumed": [1]}' }),
    commit("spawn", 1, { detail: oneChild }),
    claimFrom("hot4", 82),
    `select commit(array_agg(id), array_agg(82::bigint), array_agg(0), array_agg('done'::text), null, null, array_agg('1'::text),
      null, null, null, null, array_agg(parent_id), null, null, null, null, true) from (select * from runs where queue = 'hot4' and locked_by = 'w' limit 50) r`,
    `select children(id, -1) from unnest(${parked}) id`,
    claimFrom("hot3", 81),
    commit("done", 0, {}),
    claimFrom("keyed", 83),
    `select commit(array_agg(id), array_agg(83::bigint), array_agg(0), array_agg('done'::text), null, null, array_agg('1'::text),
      null, null, null, null, null, array_agg(partition_key), null, 'w', array_agg(85::bigint), true) from (select * from runs where queue = 'keyed' and locked_by = 'w' limit 50) r`,
    claimFrom("keyed", 86),
    "select finish(id, 86, 0, null, '1', partition_key, 'w', 87) from (select id, partition_key from runs where queue = 'keyed' and locked_by = 'w' and claim_id = 86 limit 5) r",
    "select finish(id, 87, 0, null, '1', partition_key, 'w', 88) from (select id, partition_key from runs where queue = 'keyed' and locked_by = 'w' and claim_id = 87 limit 5) r",
    "update runs set name = 'foreign' where queue = 'keyed' and status = 'runnable' and id % 3 = 0",
    claimFrom("keyed", 90),
    "select unregister('w')",
    "insert into workers (id, lease, serves, queues, registered_at, seen_at) values ('w', '1 hour', '{counter@1}', '{keyed}', now(), now())",
    claimFrom("keyed", 84),
    "select release(array_agg(id), array_agg(84::bigint)) from (select id from runs where queue = 'keyed' and locked_by = 'w' limit 50) r",
    "select * from repair_keys(null, 1000)",
    claimFrom("slotted", 61),
    `select commit(array_agg(id), array_agg(61::bigint), array_agg(0), array_agg('done'::text), null, null, array_agg('1'::text),
      null, null, null, null, null, null, null, 'w', null, true) from (select * from runs where queue = 'slotted' and claim_id = 61 limit 10) r`,
    claimFrom("slotted", 62),
    "select finish(id, 62, 0, null, '1', null, 'w', null) from (select id from runs where queue = 'slotted' and claim_id = 62 limit 3) r",
    "select release(array_agg(id), array_agg(61::bigint)) from (select id from runs where queue = 'slotted' and claim_id = 61 and locked_by = 'w' limit 50) r",
    "select why(id) from (select id from runs where queue = 'slotted' and hold = 32 limit 3) r",
    "select cancel(id, 'enough', true) from (select id from runs where queue = 'slotted' and completed_at is null limit 3) r",
    "select * from repair_slots(null, 1000)",
    "update limits set forward = '{}'",
    "select bring_forward(1000)",
    "select cancel(id, 'enough', true) from (select id from runs where queue = 'keyed' and completed_at is null limit 10) r",
    `select why(id) from unnest(${parked}) id`,
    "update runs set eligible_at = clock_timestamp() - interval '2 minutes', name = 'foreign' where queue = 'hot' and eligible_at < clock_timestamp() and id % 3 = 0",
    claimFrom("hot", 76),
    "select * from claim('hot', 'w', 75, 5, '{counter,foreign,nobody}', '{1,1,1}', null, null)",
    "select * from gauges(1000)",
    "select * from next_due('{hot,keyed}', '{counter,foreign}', '{1,1}')",
    "update runs set name = 'counter', hold = 0, status = 'runnable', locked_by = null where queue = 'hot' and eligible_at < clock_timestamp()",
    `select * from start_runs(${all("'(counter,1,machine,hot2,,,,,,,,,,,,,,,,,)'::new_run")}, ${all("'{}'::text")}, false, true, null, null)`,
    `select * from start_runs('{"(counter,1,machine,hot2,,,,,,i,u,,,,,,,,,,)"}', array['{}'], false, true, null, null)`,
    `select * from start_runs('{"(counter,1,machine,hot2,,,,,,i,u,,,,,,,,,,)"}', array['{}'], false, true, null, null)`,
    "select * from claim('hot', 'w', 77, 50, '{counter}', '{1}', null, null)",
    "select * from claim('hot', 'w', 78, 50, '{counter}', '{1}', null, null)",
    `select * from commit(${ids}, ${all("77::bigint")}, ${all("0")}, ${all("'keep'::text")}, ${all("'two'::text")}, ${all("'{}'::text")}, null, null, null, null, null, null, null, null, null, null, true)`,
    `select * from commit(${ids}, ${all("77::bigint")}, ${all("1")}, ${all("'done'::text")}, null, null, ${all("'1'::text")}, null, null, null, null, null, null, null, null, null, true)`,
    `select * from commit(${ids}, ${all("77::bigint")}, ${all("1")}, ${all("'done'::text")}, null, null, ${all("'1'::text")}, null, null, null, null, null, null, null, null, null, true)`,
    "select * from claim('hot2', 'w', 79, 50, '{counter}', '{1}', null, null)",
    `select release(${released}, ${all("79::bigint")})`,
    "select * from beat('w', 0)",
    `select * from still_held(${released}, ${all("79::bigint")})`,
    "select * from recover(1000, true, null)",
    "select * from claim('hot2', 'w', 80, 50, '{counter}', '{1}', null, null)",
    "update workers set seen_at = seen_at - interval '1 day'",
    "update settings set beats_since = clock_timestamp() - interval '1 day'",
    "select * from reap(1000)",
    "update runs set hold = 2, queue = null where queue = 'hot2'",
    "select * from place_runs(1000)",
    `update runs set expires_at = clock_timestamp() where id = any (${ids})`,
    "select sweep(1000)",
    `select * from send(${all("'mail'::text")}, ${all("'{}'::text")}, null, null, null, false)`,
    `select * from send(${all("'mail'::text")}, ${all("'{}'::text")}, null, ${all("'group'::text")}, ${all("'once'::text")}, true)`,
    `select * from send(array['mail','mail'], array['1','2'], null, array['group','group'], array['a','once'], true)`,
    receiveMail(91, "null"),
    "select ack(array_agg('mail'::text), array_agg(id), array_agg(91::bigint)) from (select id from runs where id >= 4611686018427387904 and claim_id = 91 limit 20) r",
    "select extend(array_agg('mail'::text), array_agg(id), array_agg(91::bigint), array_agg(1000 * (id % 2)), false) from (select id from runs where id >= 4611686018427387904 and claim_id = 91 limit 20) r",
    "update runs set lease_expires_at = clock_timestamp() where id >= 4611686018427387904 and lease_expires_at is not null",
    "select * from expire(1000, null)",
    "update runs set attempt = 10 where id >= 4611686018427387904 and id % 3 = 0",
    receiveMail(92, `'{"a": 1}'`),
    receiveMail(93, "null"),
    "select publish('topic', '{}', 'once', true) from generate_series(1, 2)",
    `select * from get(${ids})`,
    `select * from results(${ids})`,
  ];
}

describe("the plans of the hot functions", () => {
  it("ride their indexes on an empty, never analysed table", async () => {
    const database = await testDatabase();
    const plans = await plansOf(await database.connect(), await hotCalls(database));
    expect(plans.length).toBeGreaterThan(20);
    expect(problems(plans)).toEqual([]);
  });

  it("ride their indexes on a table that was once truncated", async () => {
    const database = await testDatabase();
    await database.sql(
      "insert into runs (id, status, name, queue, priority, retention, eligible_at, inserted_at, input) select i << 6, 'done', 'x', 'x', 0, '1 d', now(), now(), '1' from generate_series(1, 20000) i",
    );
    await database.sql("truncate runs");
    await database.sql(
      "insert into runs (id, status, name, queue, priority, retention, eligible_at, inserted_at, input) select (100000 + i) << 6, 'done', 'x', 'x', 0, '1 d', now(), now(), '1' from generate_series(1, 20000) i",
    );
    await database.sql("select setval('run_ids', 1000000)");
    expect(problems(await plansOf(await database.connect(), await hotCalls(database)))).toEqual([]);
  });

  it("ride their indexes on a million rows, never analysed and analysed, also when cached while it was empty", async () => {
    const database = await testDatabase();
    await database.sql("alter table runs set (autovacuum_enabled = off)");
    const early = await hotCalls(database);
    const fill = async (): Promise<void> => {
      await database.sql(`
        insert into runs (id, status, name, queue, priority, kind, eligible_at, inserted_at, completed_at, expires_at, retention, input, result)
        select (1000000 + i) << 6, 'done', 'counter', 'default', 0, 'machine', clock_timestamp(), clock_timestamp(), clock_timestamp(),
          clock_timestamp() + interval '1 day', '1 day', '{}', '1' from generate_series(1, 800000) i`);
      await database.sql(`
        insert into runs (id, status, name, queue, priority, kind, eligible_at, inserted_at, retention, input)
        select (3000000 + i) << 6, 'runnable', 'counter', 'hot', 0, 'machine', clock_timestamp() + interval '1 day', clock_timestamp(), '1 day', '{}'
        from generate_series(1, 200000) i`);
      await database.sql(`
        insert into runs (id, status, name, queue, priority, kind, eligible_at, inserted_at, retention, input, partition_key, hold)
        select (4000000 + i) << 6, 'runnable', 'counter', 'keyed', 0, 'machine', clock_timestamp() + interval '1 hour' * (i % 3), clock_timestamp(),
          '1 day', '{}', 'crowd ' || i % 7, 1 from generate_series(1, 50000) i`);
      await database.sql(`
        insert into runs (id, status, name, queue, priority, kind, eligible_at, inserted_at, retention, input, concurrency, hold)
        select (6000000 + i) << 6, 'runnable', 'counter', 'slotted', 0, 'machine', clock_timestamp(), clock_timestamp(),
          '1 day', '{}', 'gpu:' || i % 7, 32 from generate_series(1, 50000) i`);
      await database.sql(`
        insert into slots (run_id, concurrency, slot, queue, name, version, priority, eligible_at)
        select r.id, r.concurrency, 0, r.queue, r.name, r.version, r.priority, r.eligible_at from runs r where r.id > 6000000 << 6 and r.hold = 32`);
      await database.sql(`
        insert into signals (run_id, seq, name, payload, inserted_at)
        select (1000000 + i % 1000) << 6, i, 'x', '{}', clock_timestamp() from generate_series(1, 200000) i`);
    };
    // one connection keeps, in its functions, the plans made on the empty table
    const old = await database.connect();
    for (const call of early) await old.query(call);
    await fill();
    for (const client of [old, await database.connect()]) {
      const plans = await plansOf(client, await hotCalls(database));
      expect(plans.length).toBeGreaterThan(20);
      expect(problems(plans)).toEqual([]);
    }
    await database.sql("analyze runs");
    const listed = await plansOf(await database.connect(), [
      "select * from list('counter', null, null, null, null, null, null, null, null, null, null, null, 20, null)",
      "select * from list('counter', null, '{done,failed}', null, null, null, null, null, null, null, null, null, 20, null)",
      "select * from list(null, null, null, null, null, null, null, null, null, null, null, null, 20, null)",
    ]);
    const sorted = listed
      .flatMap((plan) => [...nodes(plan)])
      .filter((node) => (node["Actual Rows"] ?? 0) > 1_000);
    expect(sorted).toEqual([]);
    expect(problems(await plansOf(await database.connect(), await hotCalls(database)))).toEqual([]);
  }, 300_000);
});
