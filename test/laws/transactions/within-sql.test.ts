import { job, machine, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;
// A role that knows nothing of Pawl's schema but its name.
const user = await database.connect();
await user.query("set search_path = public");
const call = async <Value>(text: string, values: unknown[] = []): Promise<Value> => {
  const { rows } = await user.query<Record<string, Value>>(text, values);
  return Object.values(rows[0]!)[0]!;
};

const echo = job({ name: "echo", run: (_ctx, input: unknown) => input as null });
const waiting = machine({
  name: "waiting",
  state: type<{ n: number }>(),
  steps: {
    start: (ctx) => ctx.awaitSignal("go", "woken", ctx.state),
    woken: (ctx) => ctx.done(ctx.awaited.map(({ payload }) => payload)),
    other: (ctx) => ctx.done(`began at other with ${ctx.state.n}`),
  },
});
await serve([echo, waiting]);

describe("pawl.start in SQL", () => {
  it("takes a name and an input, and answers the id of the run", async () => {
    const runId = await call<string>(`select pawl.start('echo', '{"email":"a@b.c"}')`);
    expect(await pawl.result(runId)).toEqual({ email: "a@b.c" });
  });

  it("needs no input", async () => {
    expect(await pawl.result(await call<string>("select pawl.start('echo')"))).toBeNull();
  });

  it("takes every option of start, by name", async () => {
    await pawl.limits.set("slow", { allowed: 100, period: "1s" });
    const runId = await call<string>(
      `select pawl.start('waiting', '{"n":1}', version => 1, queue => 'elsewhere', priority => 5, delay => '2 days', idempotency_key => 'i',
         unique_key => 'é', unique_scope => '{runnable,done}', partition_key => 'p', rate_limit => 'slow:eu', weight => 3,
         retention => '90 minutes', step => 'other')`,
    );
    expect(
      await sql(
        `select version, queue, priority, round(extract(epoch from eligible_at - inserted_at) / 86400) as days, idempotency_key,
           convert_from(unique_key, 'UTF8') as unique_key, unique_scope::text, partition_key, rate_limit, weight,
           retention::text, step, status, locked_by from runs where id = $1`,
        [runId],
      ),
    ).toEqual([
      {
        version: 1,
        queue: "elsewhere",
        priority: 5,
        days: "2",
        idempotency_key: "i",
        unique_key: "é",
        unique_scope: "{runnable,done}",
        partition_key: "p",
        rate_limit: "slow:eu",
        weight: 3,
        retention: "01:30:00",
        step: "other",
        status: "runnable",
        locked_by: null,
      },
    ]);
  });

  it("begins not before a time, and at another step", async () => {
    const runId = await call<string>(
      `select pawl.start('waiting', '{"n":7}', at => clock_timestamp() + '50 ms', step => 'other')`,
    );
    expect(await pawl.result(runId)).toBe("began at other with 7");
  });

  it("answers with the holder of a taken key", async () => {
    const [first, second] = [
      await call<string>("select pawl.start('echo', '1', idempotency_key => 'once')"),
      await call<string>("select pawl.start('echo', '2', idempotency_key => 'once')"),
    ];
    expect(second).toBe(first);
    expect(await pawl.result(first)).toBe(1);
  });

  it("starts one run per row of a query", async () => {
    const { rows } = await user.query<{ id: string }>(
      "select pawl.start('echo', to_jsonb(n)) as id from generate_series(1, 50) n",
    );
    const results = await Promise.all(rows.map(({ id }) => pawl.result(id)));
    expect(results).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  });

  it("is as committed as the transaction around it", async () => {
    await user.query("begin");
    const lost = await call<string>("select pawl.start('echo', '1')");
    await user.query("rollback");
    await expect(pawl.runs.get(lost)).rejects.toMatchObject({ code: "RunNotFound" });
  });

  it.each([
    ["'Not A Name'", "PW422", /name of a definition must be .* not 'Not A Name'/],
    ["null", "PW422", /name of a definition must be .* not null/],
    ["'echo', queue => 'no queue'", "PW422", /name of a queue/],
    ["'echo', step => 'no step'", "PW422", /name of a step/],
    ["'echo', delay => '1 s', at => now()", "PW422", /delay or at/],
    ["'echo', delay => '-1 s'", "PW422", /negative/],
    ["'echo', version => 0", "PW422", /at least 1/],
    ["'echo', priority => 40000", "PW422", /32767/],
    ["'echo', unique_key => ''", "PW422", /empty/],
    ["'echo', unique_scope => '{done}'", "PW422", /without unique_key/],
    [
      "'echo', unique_key => 'k', unique_scope => array['nonsense']",
      "PW422",
      /one or more of runnable, .*nonsense/,
    ],
    ["'echo', unique_key => 'k', unique_scope => array['done', null]", "PW422", /one or more of runnable/],
    ["'echo', unique_key => 'k', unique_scope => '{}'", "PW422", /one or more of runnable/],
    ["'echo', rate_limit => 'nobody-set-it'", "PW422", /there is no rate limit/],
    ["'echo', partition_key => repeat('x', 513)", "PW422", /too long/],
    ["'echo', to_jsonb(repeat('x', 16 * 1024 * 1024))", "PW422", /at most 16777216 bytes/],
  ])("refuses start(%s)", async (given, code, message) => {
    const refused = user.query(`select pawl.start(${given})`);
    await expect(refused).rejects.toMatchObject({ code });
    await expect(refused).rejects.toThrow(message);
  });

  it("raises PW409 when two keys have different holders", async () => {
    await call("select pawl.start('echo', '1', idempotency_key => 'mine', delay => '1 h')");
    await call("select pawl.start('echo', '1', unique_key => 'theirs', delay => '1 h')");
    await expect(
      user.query("select pawl.start('echo', '1', idempotency_key => 'mine', unique_key => 'theirs')"),
    ).rejects.toMatchObject({ code: "PW409" });
  });
});

describe("pawl.signal in SQL", () => {
  const parked = async (): Promise<string> => {
    const { runId } = await pawl.start(waiting, { n: 1 });
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    return runId;
  };

  it("takes a run, a name and a payload, and wakes the run", async () => {
    const runId = await parked();
    expect(await call<boolean>(`select pawl.signal($1, 'go', '{"amount":1}')`, [runId])).toBe(true);
    expect(await pawl.result(runId)).toEqual([{ amount: 1 }]);
  });

  it("sends {} without a payload, and once per dedup key", async () => {
    const runId = await parked();
    const text = "select pawl.signal($1, 'other', dedup_key => 'k')";
    expect([await call<boolean>(text, [runId]), await call<boolean>(text, [runId])]).toEqual([true, false]);
    expect(await sql("select payload from signals where run_id = $1", [runId])).toEqual([{ payload: {} }]);
  });

  it("raises for what cannot take it, or is no signal", async () => {
    const runId = await parked();
    const ended = await call<string>("select pawl.start('echo')");
    await pawl.result(ended);
    for (const [given, code] of [
      ["64000000000, 'go'", "PW404"],
      [`${ended}, 'go'`, "PW409"],
      [`${runId}, 'no name'`, "PW422"],
      [`${runId}, 'go', 'null'`, "PW422"],
      [`${runId}, 'go', null`, "PW422"],
      [`${runId}, 'go', '1', ''`, "PW422"],
    ]) {
      await expect(user.query(`select pawl.signal(${given})`), given).rejects.toMatchObject({ code });
    }
    expect(await sql("select from signals where run_id = $1", [runId])).toEqual([]);
  });
});

describe("pawl.send and pawl.publish in SQL", () => {
  it("take a queue and a body, and count when the transaction commits", async () => {
    await user.query("begin");
    const id = await call<string>(
      `select pawl.send('mail', '{"to":"a@b.c"}', "group" => 'g', dedup_key => 'k')`,
    );
    expect(await pawl.queues.receive("mail")).toEqual([]);
    await user.query("commit");
    expect(await call<string>("select pawl.send('mail', '1', dedup_key => 'k')")).toBe(id);
    const [message] = await pawl.queues.receive("mail", { wait: "10s" });
    expect(message).toMatchObject({ id, body: { to: "a@b.c" }, group: "g" });
    await user.query("begin");
    await call("select pawl.send('mail', '2')");
    await user.query("rollback");
    expect(await pawl.queues.stats("mail")).toMatchObject({ visible: 0, inFlight: 1 });
  });

  it("delay a message", async () => {
    await call("select pawl.send('later', '1', interval '1 hour')");
    expect(await pawl.queues.stats("later")).toMatchObject({ visible: 0, delayed: 1 });
  });

  it("publish to all who have subscribed", async () => {
    await pawl.subscriptions.create("sql.*", { type: "queue", queue: "sql" });
    await pawl.subscriptions.create("sql.*", { type: "workflow", name: "echo" });
    expect(await call("select pawl.publish('sql.a', '5', 'once')")).toEqual({
      runs: 1,
      messages: 1,
      deliveries: 0,
      created: true,
    });
    expect(await call("select pawl.publish('sql.a', '5', 'once')")).toMatchObject({ created: false });
    expect(await pawl.queues.receive("sql", { wait: "10s" })).toMatchObject([{ body: 5 }]);
  });

  it.each([
    "send('No Name', '1')",
    `send('${"x".repeat(44)}', '1')`,
    "send('q', '1', interval '-1 second')",
    "send('q', '1', dedup_key => '')",
    "publish('a b', '1')",
    "publish('a', '1', '')",
  ])("%s is refused", async (given) => {
    await expect(user.query(`select pawl.${given}`)).rejects.toMatchObject({ code: "PW422" });
  });
});
