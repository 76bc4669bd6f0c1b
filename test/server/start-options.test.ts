import { connect, job, machine, serve, type } from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

const { url, sql } = await testDatabase();
const { call, url: address } = await testServer({ database: url });

const order = machine({
  name: "order",
  state: type<object>(),
  steps: {
    start: (ctx) => ctx.awaitSignal("paid", "end", {}),
    end: (ctx) => ctx.done({ tags: ctx.tags, paid: ctx.awaited[0]!.payload }),
  },
});
const hanging = job({
  name: "hanging",
  timeout: 150,
  run: (ctx) =>
    new Promise((resolve) => {
      ctx.signal.addEventListener("abort", resolve);
    }),
});
// Behind the server, like a worker on another machine.
const worker = serve([order, hanging], { url: address });
beforeAll(() => worker.ready);
afterAll(() => worker.stop());

const start = async (name: string, body: unknown): Promise<{ runId: string; created: boolean }> =>
  (await call("POST", `/v1/workflows/${name}/runs`, body)).body as { runId: string; created: boolean };

describe("over REST", () => {
  it("a start takes tags, timeout and correlation key; a listing finds it by its tags", async () => {
    const { runId } = await start("order", {
      input: {},
      tags: { customer: "42", "a.b": "x=y" },
      timeout: "1h",
      correlationKey: "order-42",
    });
    const { body } = await call("GET", `/v1/runs/${runId}`);
    expect(body).toMatchObject({
      tags: { customer: "42", "a.b": "x=y" },
      correlationKey: "order-42",
      deadlineAt: expect.stringMatching(/^\d{4}-/) as string,
    });
    const listed = await call("GET", `/v1/runs?tag.customer=42&tag.a.b=${encodeURIComponent("x=y")}`);
    expect(listed.body).toMatchObject({ runs: [{ runId }] });
    expect((await call("GET", "/v1/runs/count?tag.customer=43")).body).toEqual({ count: 0 });
    expect((await call("GET", "/v1/runs?correlationKey=order-42")).body).toMatchObject({ runs: [{ runId }] });
    expect((await call("GET", "/v1/runs/find?correlationKey=order-42&name=order")).body).toMatchObject({
      runs: [{ runId }],
    });
    const sent = await call("POST", "/v1/signals/paid?correlationKey=order-42", { euros: 25 });
    expect(sent).toMatchObject({ status: 200, body: { delivered: [runId], duplicate: [], full: [] } });
    await until("it has ended", async () => {
      const run = (await call("GET", `/v1/runs/${runId}`)).body as { output: unknown };
      return run.output !== null;
    });
    expect((await call("GET", `/v1/runs/${runId}`)).body).toMatchObject({
      output: { tags: { customer: "42" }, paid: { euros: 25 } },
    });
  });

  it("a debounced start answers 200 with the same run", async () => {
    const body = { input: 1, queue: "nobody", debounce: { key: "k", delay: "1h" } };
    const first = await call("POST", "/v1/workflows/parked/runs", body);
    const second = await call("POST", "/v1/workflows/parked/runs", { ...body, input: 2 });
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body).toEqual({ ...(first.body as object), created: false });
  });

  it.each<[string, unknown, RegExp]>([
    [
      "17 tags",
      { tags: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`t${n}`, ""])) },
      /at most 16/,
    ],
    ["debounce with a unique key", { debounce: { key: "k", delay: 1 }, uniqueKey: "u" }, /not both/],
    ["a timeout of 0", { timeout: 0 }, /longer than 0/],
  ])("%s answer 422", async (_what, body, message) => {
    const { status, body: problem } = await call("POST", "/v1/workflows/parked/runs", body);
    expect(status).toBe(422);
    expect((problem as { detail: string }).detail).toMatch(message);
  });

  it("find without a key, or with two, answers 422", async () => {
    expect((await call("GET", "/v1/runs/find")).status).toBe(422);
    expect((await call("GET", "/v1/runs/find?uniqueKey=a&correlationKey=b")).status).toBe(422);
  });
});

describe("a worker behind a server", () => {
  it("aborts a step at its deadline, and releases the run", async () => {
    const { runId } = await start("hanging", {});
    await until("it has failed and is released", async () => {
      const [row] = await sql<{ status: string; locked_by: string | null }>(
        "select status, locked_by from runs where id = $1",
        [runId],
      );
      return row!.status === "failed" && row!.locked_by === null;
    });
    const { body } = await call("GET", `/v1/runs/${runId}`);
    expect(body).toMatchObject({ status: "failed", error: { code: "DeadlineExceeded" } });
  });

  it("and a client behind it use the same calls", async () => {
    const pawl = connect(address);
    const options = { tags: { via: "http" }, correlationKey: "via-http", timeout: "1h" } as const;
    const { runId } = await pawl.start(order, {}, options);
    const [found] = await pawl.runs.find({ correlationKey: "via-http" });
    expect(found).toMatchObject({ runId, tags: options.tags, deadlineAt: expect.any(Date) as Date });
    expect((await pawl.runs.list({ tags: options.tags })).runs).toMatchObject([{ runId }]);
    expect(await pawl.signal({ correlationKey: "via-http" }, "paid", { n: 1 })).toMatchObject({
      delivered: [runId],
    });
    expect(await pawl.result(runId)).toEqual({ tags: options.tags, paid: { n: 1 } });
    const debounce = { key: "http", delay: "1h", maxDelay: "2h" } as const;
    const first = await pawl.start(order, {}, { debounce });
    expect(await pawl.start(order, {}, { debounce })).toEqual({ ...first, created: false });
    expect((await pawl.why(first.runId)).reason).toBe("debounced");
    await pawl.close();
  });
});
