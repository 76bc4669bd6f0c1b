import { job, machine, serve, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";

const { url, sql } = await testDatabase();
const { call, url: address } = await testServer({ database: url });

const greet = job({ name: "greet", run: (_ctx, input: { who: string }) => `hello ${input.who}` });
const order = workflow({
  name: "order",
  run: async (ctx) => {
    const paid = await ctx.step.waitForEvent("paid");
    return ctx.step.run("ship", () => paid);
  },
});
const failing = job({
  name: "failing",
  maxAttempts: 1,
  run: () => {
    throw new Error("no luck");
  },
});
const steps = machine({
  name: "steps",
  steps: { start: (ctx) => ctx.next("last", {}), last: (ctx) => ctx.done("by the steps") },
});

const worker = serve([greet, order, failing, steps], { url });
beforeAll(() => worker.ready);
afterAll(() => worker.stop());

const idOf = (answer: { body: unknown }): string => (answer.body as { runId: string }).runId;
const start = async (name: string, body?: unknown): Promise<string> =>
  idOf(await call("POST", `/v1/workflows/${name}/runs`, body));
const ended = async (runId: string) => (await call("GET", `/v1/runs/${runId}?waitSeconds=20`)).body;

describe("starting a run", () => {
  it("answers 201 with its id and place, and it runs", async () => {
    const answer = await call("POST", "/v1/workflows/greet/runs", { input: { who: "ann" } });
    expect(answer).toMatchObject({ status: 201, body: { created: true, status: "running" } });
    expect(answer.headers.get("location")).toBe(`/v1/runs/${idOf(answer)}`);
    expect(await ended(idOf(answer))).toMatchObject({
      name: "greet",
      version: 1,
      kind: "job",
      status: "completed",
      phase: "done",
      input: { who: "ann" },
      output: "hello ann",
      error: null,
    });
  });

  it("needs no body at all", async () => {
    expect(await ended(await start("steps"))).toMatchObject({ output: "by the steps", input: null });
  });

  it("answers 200 with the holder of an idempotency key, in the header or in the body", async () => {
    const first = await call(
      "POST",
      "/v1/workflows/greet/runs",
      { input: { who: "bob" } },
      { "idempotency-key": "bob" },
    );
    const again = await call("POST", "/v1/workflows/greet/runs", {
      input: { who: "eve" },
      idempotencyKey: "bob",
    });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body).toMatchObject({ runId: idOf(first), created: false });
  });

  it("refuses two different idempotency keys", async () => {
    const answer = await call(
      "POST",
      "/v1/workflows/greet/runs",
      { idempotencyKey: "a" },
      { "idempotency-key": "b" },
    );
    expect(answer).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
  });

  it("takes every option of the library, and seconds, days and base64 beside", async () => {
    await call("PUT", "/v1/limits/mail", { allowed: 1_000, period: "1s" });
    const runId = await start("greet", {
      input: { who: "cid" },
      queue: "elsewhere",
      priority: -3,
      partitionKey: "k",
      rateLimit: { name: "mail", key: "x" },
      weight: 2,
      delaySeconds: 3_600,
      uniqueKeyBase64: Buffer.from([0, 255, 7]).toString("base64"),
      uniqueScope: ["runnable"],
      retentionDays: 2,
    });
    const [row] = await sql(
      "select queue, priority, partition_key, rate_limit, weight, unique_key, unique_scope::text, retention::text, eligible_at - inserted_at as delay from runs where id = $1",
      [runId],
    );
    expect(row).toMatchObject({
      queue: "elsewhere",
      priority: -3,
      partition_key: "k",
      rate_limit: "mail:x",
      weight: 2,
      unique_key: Buffer.from([0, 255, 7]),
      unique_scope: "{runnable}",
      retention: "48:00:00",
      delay: { hours: 1 },
    });
  });

  it("takes a version: its registration says the rest", async () => {
    await sql(
      "insert into definitions values ('old', 1, 'job', 'slow', 5, '3 days', now()), ('old', 2, 'workflow', 'fast', 1, '4 days', now())",
    );
    const bodies = [
      { version: 1 },
      { version: 2, priority: 9 },
      {},
      { version: 7 },
      { version: 8, kind: "machine" },
    ];
    const runIds = await Promise.all(bodies.map((body) => start("old", body)));
    const rows = await sql(
      "select version, kind, queue, priority, retention::text, hold from runs where id = any ($1) order by array_position($1, id)",
      [runIds],
    );
    expect(rows).toEqual([
      { version: 1, kind: "job", queue: "slow", priority: 5, retention: "3 days", hold: 0 },
      { version: 2, kind: "workflow", queue: "fast", priority: 9, retention: "4 days", hold: 0 },
      { version: 2, kind: "workflow", queue: "fast", priority: 1, retention: "4 days", hold: 0 },
      // Nobody has registered it yet: the rest is left open until somebody does.
      { version: 7, kind: null, queue: null, priority: null, retention: null, hold: 2 },
      { version: 8, kind: "machine", queue: "default", priority: 0, retention: "720:00:00", hold: 0 },
    ]);
  });

  it("keeps members such as __proto__, and pollutes nothing", async () => {
    const text = '{"input":{"__proto__":{"polluted":true},"constructor":1}}';
    const answer = await fetch(`${address}/v1/workflows/nobody/runs`, {
      method: "POST",
      body: text,
      headers: { "content-type": "application/json" },
    });
    const { runId } = (await answer.json()) as { runId: string };
    const [row] = await sql<{ input: string }>("select input::text from runs where id = $1", [runId]);
    expect(JSON.parse(row!.input)).toEqual(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}'));
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe("starting many", () => {
  it("answers in their order", async () => {
    const { status, body } = await call("POST", "/v1/runs/batch", {
      runs: [
        { name: "greet", input: { who: "1" }, idempotencyKey: "batch" },
        { name: "steps" },
        { name: "greet", input: { who: "2" }, idempotencyKey: "batch" },
      ],
    });
    const { runs } = body as { runs: { runId: string; created: boolean }[] };
    expect(status).toBe(200);
    expect(runs.map(({ created }) => created)).toEqual([true, true, false]);
    expect(runs[2]!.runId).toBe(runs[0]!.runId);
  });

  it("starts none if one is wrong, and names it", async () => {
    const answer = await call("POST", "/v1/runs/batch", {
      runs: [{ name: "batched" }, { name: "batched", queue: "No!" }],
    });
    expect(answer).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    expect((await call("GET", "/v1/workflows/batched/runs")).body).toEqual({ runs: [], cursor: null });
  });

  it("starts the others if it need not be all, and tells what is wrong in its place", async () => {
    await start("greet", { uniqueKey: "u", queue: "elsewhere" });
    await start("greet", { idempotencyKey: "i", queue: "elsewhere" });
    const { body } = await call("POST", "/v1/runs/batch", {
      atomic: false,
      runs: [
        { name: "single" },
        { name: "single", queue: "No!" },
        { name: "greet", uniqueKey: "u", idempotencyKey: "i" },
      ],
    });
    expect((body as { runs: unknown[] }).runs).toMatchObject([
      { created: true },
      { error: { code: "InvalidOption", status: 422 } },
      { error: { code: "KeyConflict", status: 409 } },
    ]);
  });
});

describe("a run", () => {
  it("that does not exist is 404, whatever its id looks like", async () => {
    for (const id of ["6400000", "0", "x", "99999999999999999999", "%00"]) {
      expect(await call("GET", `/v1/runs/${id}`)).toMatchObject({
        status: 404,
        body: { code: "RunNotFound" },
      });
    }
  });

  it("is found below its name, and not below another", async () => {
    const runId = await start("order");
    const calls = [
      ["GET", ""],
      ["GET", "/steps"],
      ["GET", "/why"],
      ["POST", "/signals/paid"],
      ["DELETE", ""],
    ] as const;
    for (const [method, rest] of calls) {
      const wrong = await call(method, `/v1/workflows/greet/runs/${runId}${rest}`);
      expect(wrong).toMatchObject({ status: 404, body: { code: "RunNotFound" } });
    }
    for (const [method, rest] of calls.slice(0, 3)) {
      expect((await call(method, `/v1/workflows/order/runs/${runId}${rest}`)).status).toBe(200);
    }
    await call("DELETE", `/v1/workflows/order/runs/${runId}`);
    expect((await call("GET", `/v1/runs/${runId}`)).body).toMatchObject({ status: "cancelled" });
  });

  it("takes signals, once per key, and records its steps", async () => {
    const runId = await start("order");
    const path = `/v1/runs/${runId}/signals/paid`;
    const send = () => call("POST", path, { amount: 5 }, { "idempotency-key": "pay" });
    expect((await send()).body).toEqual({ delivered: true });
    expect(await ended(runId)).toMatchObject({ status: "completed", output: { amount: 5 } });
    expect((await send()).body).toEqual({ delivered: false });
    expect(await call("POST", path, {})).toMatchObject({ status: 409, body: { code: "RunEnded" } });
    const { steps: recorded } = (await call("GET", `/v1/runs/${runId}/steps`)).body as {
      steps: { name: string }[];
    };
    expect(recorded.map(({ name }) => name)).toEqual(["paid", "ship"]);
  });

  it.each([
    ["no body at all", {}],
    ["an empty body", { body: "", headers: { "content-type": "application/json" } }],
    ["a type and no body", { headers: { "content-type": "application/json" } }],
  ])("takes a signal with %s as one whose payload is {}", async (_what, init) => {
    for (const path of ["/v1/runs", "/v1/workflows/order/runs"]) {
      const runId = await start("order");
      const sent = await fetch(`${address}${path}/${runId}/signals/paid`, { method: "POST", ...init });
      expect([sent.status, await sent.json()]).toEqual([200, { delivered: true }]);
      expect(await ended(runId)).toMatchObject({ status: "completed", output: {} });
    }
  });

  it("refuses a signal whose name is too long", async () => {
    const runId = await start("order");
    for (const name of ["x".repeat(129), "x".repeat(257)]) {
      const refused = await call("POST", `/v1/runs/${runId}/signals/${name}`, {});
      expect(refused).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    }
  });

  it("refuses null as a payload", async () => {
    const runId = await start("order");
    expect(await call("POST", `/v1/runs/${runId}/signals/x`, null)).toMatchObject({
      status: 422,
      body: { code: "InvalidInput" },
    });
  });

  it("is cancelled with its reason", async () => {
    const runId = await start("order");
    const cancel = () => call("DELETE", `/v1/runs/${runId}?reason=enough&cascade=true`);
    expect((await cancel()).body).toEqual({ cancelled: 1 });
    expect((await cancel()).body).toEqual({ cancelled: 0 });
    expect((await call("GET", `/v1/runs/${runId}`)).body).toMatchObject({
      status: "cancelled",
      error: { message: "enough" },
    });
  });

  it("tells why it waits", async () => {
    const runId = await start("nobody");
    expect((await call("GET", `/v1/runs/${runId}/why`)).body).toMatchObject({ runId, reason: "unserved" });
  });

  it("is answered as it is when the time to wait has passed", async () => {
    const runId = await start("order");
    const answer = await call("GET", `/v1/runs/${runId}?waitSeconds=0.2`);
    expect(answer).toMatchObject({ status: 200, body: { runId, status: "running" } });
  });
});

describe("awaiting runs", () => {
  it("answers those that have ended, or do not exist", async () => {
    const [good, bad, open] = await Promise.all([
      start("greet", { input: { who: "x" } }),
      start("failing"),
      start("order"),
    ]);
    await Promise.all([ended(good), ended(bad)]);
    const { body } = await call("POST", "/v1/runs/ended", { runIds: [good, bad, open, "6400000", "x"] });
    const { runs } = body as { runs: { runId: string }[] };
    expect(runs.toSorted((one, other) => one.runId.localeCompare(other.runId))).toEqual(
      [
        { runId: good, status: "completed", output: "hello x", error: null },
        {
          runId: bad,
          status: "failed",
          output: null,
          error: {
            name: "Error",
            message: "no luck",
            stack: expect.stringMatching(/^Error: no luck\n    at .*runs\.test\.[jt]s:\d+:\d+\)$/) as string,
          },
        },
        { runId: "6400000", status: null, output: null, error: null },
        { runId: "x", status: null, output: null, error: null },
      ].toSorted((one, other) => one.runId.localeCompare(other.runId)),
    );
  });

  it("holds the answer until the first of them ends", async () => {
    const [one, other] = await Promise.all([start("order"), start("order")]);
    const held = call("POST", "/v1/runs/ended", { runIds: [one, other], waitSeconds: 20 });
    await call("POST", `/v1/runs/${other}/signals/paid`, { amount: 1 });
    expect((await held).body).toMatchObject({ runs: [{ runId: other, status: "completed" }] });
  });

  it("answers with none when the time has passed", async () => {
    const runId = await start("order");
    expect((await call("POST", "/v1/runs/ended", { runIds: [runId], waitSeconds: 0.1 })).body).toEqual({
      runs: [],
      more: false,
    });
  });
});
