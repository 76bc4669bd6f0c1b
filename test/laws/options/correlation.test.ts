import { InvalidOption, job, machine, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const waiter = (name: string) =>
  machine({
    name,
    state: type<object>(),
    steps: {
      start: (ctx) => ctx.awaitSignal("paid", "end", {}),
      end: (ctx) => ctx.done(ctx.awaited[0]!.payload),
    },
  });
const order = waiter("order");
const invoice = waiter("invoice");
const parked = job({ name: "parked", queue: "nobody", run: () => 0 });
await serve([order, invoice]);

const sorted = (ids: readonly string[]): string[] => ids.toSorted();

describe("a signal to a correlation key", () => {
  it("goes to all live runs that were started with it, and wakes those that wait for it", async () => {
    const options = { correlationKey: "order-42" };
    const runs = [
      await pawl.start(order, {}, options),
      await pawl.start(invoice, {}, options),
      await pawl.start(parked, null, options),
    ].map(({ runId }) => runId);
    await pawl.start(order, {}, { correlationKey: "order-4" });
    const sent = await pawl.signal(options, "paid", { euros: 25 });
    expect({ ...sent, delivered: sorted(sent.delivered) }).toEqual({
      delivered: sorted(runs),
      duplicate: [],
      full: [],
    });
    expect(await pawl.result(runs[0]!)).toEqual({ euros: 25 });
    expect(await pawl.result(runs[1]!)).toEqual({ euros: 25 });
    // The two have ended.
    expect((await pawl.signal(options, "paid", {})).delivered).toEqual([runs[2]]);
  });

  it("goes to the runs of one definition, if it is named", async () => {
    const options = { correlationKey: "named" };
    const { runId } = await pawl.start(order, {}, options);
    await pawl.start(parked, null, options);
    expect((await pawl.signal({ ...options, name: "order" }, "paid")).delivered).toEqual([runId]);
    expect(await pawl.result(runId)).toEqual({});
  });

  it("with a dedup key changes nothing the second time", async () => {
    const { runId } = await pawl.start(parked, null, { correlationKey: "dedup" });
    const send = () => pawl.signal({ correlationKey: "dedup" }, "paid", {}, { dedupKey: "once" });
    expect(await send()).toEqual({ delivered: [runId], duplicate: [], full: [] });
    expect(await send()).toEqual({ delivered: [], duplicate: [runId], full: [] });
  });

  it("reaches nobody if no live run has it", async () => {
    expect(await pawl.signal({ correlationKey: "nobody" }, "paid")).toEqual({
      delivered: [],
      duplicate: [],
      full: [],
    });
  });

  it("is refused if more than 1,000 live runs have it, and none of them gets it", async () => {
    const items = Array.from({ length: 1_001 }, (_, n) => ({ input: n, correlationKey: "too-many" }));
    await pawl.startMany(parked, items);
    await expect(pawl.signal({ correlationKey: "too-many" }, "paid")).rejects.toThrow(
      /more than 1000 live runs have the correlation key 'too-many'/,
    );
    const [row] = await sql<{ n: number }>(
      "select count(*)::int as n from signals s join extras x on x.run_id = s.run_id where x.correlation_key = 'too-many'",
    );
    expect(row).toEqual({ n: 0 });
  });

  it.each<[string, unknown, RegExp]>([
    ["without a key", {}, /correlationKey must be a string/],
    ["with an unknown member", { correlationKey: "a", definition: "b" }, /unknown option "definition"/],
    ["with a bad name", { correlationKey: "a", name: "No!" }, /the name of a definition/],
  ])("%s is refused", async (_what, target, message) => {
    const refused = await pawl
      .signal(target as { correlationKey: string }, "paid")
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(InvalidOption);
    expect((refused as Error).message).toMatch(message);
  });
});

describe("runs.find", () => {
  const ids = (runs: readonly { runId: string }[]): string[] => runs.map(({ runId }) => runId);

  it("finds runs by correlation key, live ones first, then the newest", async () => {
    const options = { correlationKey: "found" };
    const live = await pawl.start(parked, null, options);
    const [first, second] = [await pawl.start(order, {}, options), await pawl.start(order, {}, options)];
    await pawl.signal({ ...options, name: "order" }, "paid");
    await until("both have ended", async () => {
      return (await pawl.runs.count({ ...options, status: "completed" })) === 2;
    });
    const found = await pawl.runs.find(options);
    expect(ids(found)).toEqual([live.runId, second.runId, first.runId]);
    expect(found[0]!.correlationKey).toBe("found");
    expect(ids(await pawl.runs.find({ ...options, name: "order" }))).toEqual([second.runId, first.runId]);
    expect(ids((await pawl.runs.list(options)).runs)).toEqual([second.runId, first.runId, live.runId]);
  });

  it("finds a run by its idempotency key, also when it has ended, per definition", async () => {
    const one = await pawl.start(order, {}, { idempotencyKey: "once" });
    const other = await pawl.start(parked, null, { idempotencyKey: "once" });
    await pawl.runs.cancel(one.runId);
    expect(ids(await pawl.runs.find({ idempotencyKey: "once" }))).toEqual([other.runId, one.runId]);
    expect(ids(await pawl.runs.find({ idempotencyKey: "once", name: "order" }))).toEqual([one.runId]);
  });

  it("finds the run that holds a unique key now, given as text or bytes", async () => {
    const bytes = new Uint8Array([0, 255, 1]);
    const text = await pawl.start(parked, null, { uniqueKey: "u" });
    const binary = await pawl.start(parked, null, { uniqueKey: bytes });
    expect(ids(await pawl.runs.find({ uniqueKey: "u" }))).toEqual([text.runId]);
    expect(ids(await pawl.runs.find({ uniqueKey: bytes }))).toEqual([binary.runId]);
    await pawl.runs.cancel(text.runId);
    expect(await pawl.runs.find({ uniqueKey: "u" })).toEqual([]);
  });

  it.each([[{}], [{ uniqueKey: "a", correlationKey: "b" }], [{ name: "order" }]])(
    "refuses %j",
    async (options) => {
      await expect(pawl.runs.find(options as { uniqueKey: string })).rejects.toThrow(
        /runs.find takes one of idempotencyKey, uniqueKey, correlationKey/,
      );
    },
  );
});

describe("in SQL", () => {
  it("signal_correlated answers the runs that got the signal", async () => {
    const { runId } = await pawl.start(order, {}, { correlationKey: "by-sql" });
    const rows = await sql<{ id: string }>(
      "select signal_correlated('by-sql', 'paid', '{\"by\": \"sql\"}', definition => 'order')::text as id",
    );
    expect(rows).toEqual([{ id: runId }]);
    expect(await pawl.result(runId)).toEqual({ by: "sql" });
    await expect(sql("select signal_correlated('by-sql', 'not a name')")).rejects.toThrow(/name of a signal/);
  });

  it("start_with takes tags, timeout, debounce and correlation key, and refuses unknown options", async () => {
    const options = {
      tags: { customer: "42" },
      timeoutMs: 3_600_000,
      correlationKey: "started-by-sql",
      debounce: { key: "k", delayMs: 60_000 },
      queue: "nobody",
    };
    const start = (n: number, given: object) =>
      sql<{ id: string }>("select start_with('parked', $1, $2)::text as id", [
        String(n),
        JSON.stringify(given),
      ]);
    const [first] = await start(1, options);
    const [second] = await start(2, options);
    expect(second).toEqual(first);
    expect(await pawl.runs.get(first!.id)).toMatchObject({
      input: 2,
      tags: { customer: "42" },
      correlationKey: "started-by-sql",
      queue: "nobody",
      deadlineAt: expect.any(Date) as Date,
    });
    await expect(start(1, { tag: {} })).rejects.toThrow(/unknown option 'tag'/);
    await expect(start(1, { tags: { a: 1 } })).rejects.toThrow(/must be a text/);
  });
});
