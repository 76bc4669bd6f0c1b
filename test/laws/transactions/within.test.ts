import { connect, InvalidOption, job, KeyConflict, machine, RunEnded, RunNotFound, signal, type } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { libraries } from "../../support/libraries/libraries.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql, url } = database;
const { pawl, serve } = testEngine(database);
await sql("create table public.accounts (id text primary key)");

const echo = job({ name: "echo", input: type<{ value: unknown }>(), run: (_ctx, input) => input.value });
const greeting = machine({
  name: "greeting",
  state: type<{ name: string }>(),
  signals: { hello: signal<{ by: string }>() },
  steps: {
    start: (ctx) => ctx.awaitSignal("hello", "answer", ctx.state),
    answer: (ctx) => ctx.done(`${ctx.awaited[0]?.payload.by} greets ${ctx.state.name}`),
  },
});
await serve([echo, greeting]);
/** A run that waits for a greeting. */
const waiting = async (name: string) => {
  const { runId } = await pawl.start(greeting, { name });
  await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
  return runId;
};
const inbox = (runId: string) => sql("select name from signals where run_id = $1", [runId]);
const accounts = (id: string) => sql("select id from public.accounts where id = $1", [id]);
const runsNamed = (key: string) => sql("select id from runs where starts_with(idempotency_key, $1)", [key]);

describe.each(libraries)("in a transaction of $name", ({ name, open }) => {
  const library = open(url);
  afterAll(() => library.close());

  it("a commit makes runs, signals and the caller's own rows real, all at once", async () => {
    const greeted = await waiting(name);
    const key = `commit ${name}`;
    const { one, many } = await library.transaction(async (tx, insert) => {
      const within = pawl.within(tx);
      await insert(key);
      const first = await within.start(echo, { value: { from: name } }, { idempotencyKey: key });
      const others = await within.startMany(echo, [
        { input: { value: 1 }, idempotencyKey: `${key} 1` },
        { input: { value: 2 }, idempotencyKey: `${key} 2`, priority: -1 },
      ]);
      expect(await within.signal(greeted, "hello", { by: name })).toEqual({ delivered: true });
      expect(first).toEqual({ runId: expect.stringMatching(/^\d+$/), created: true, status: "running" });
      // Nobody else sees anything of it yet.
      expect(await runsNamed(key)).toEqual([]);
      expect(await inbox(greeted)).toEqual([]);
      expect(await accounts(key)).toEqual([]);
      return { one: first, many: others };
    });
    expect(await pawl.result(one.runId)).toEqual({ from: name });
    expect(await Promise.all(many.map(({ runId }) => pawl.result(runId)))).toEqual([1, 2]);
    expect(await pawl.result(greeted)).toBe(`${name} greets ${name}`);
    expect(await accounts(key)).toHaveLength(1);
  });

  it("a rollback leaves nothing behind", async () => {
    const greeted = await waiting(name);
    const key = `rollback ${name}`;
    const oops = new Error("the caller changed their mind");
    const rolledBack = library.transaction(async (tx, insert) => {
      const within = pawl.within(tx);
      await insert(key);
      await within.start(echo, { value: 1 }, { idempotencyKey: key });
      await within.startMany(echo, [{ input: { value: 2 }, idempotencyKey: `${key} 2` }]);
      await within.signal(greeted, "hello", { by: name });
      throw oops;
    });
    await expect(rolledBack).rejects.toBe(oops);
    expect(await runsNamed(key)).toEqual([]);
    expect(await inbox(greeted)).toEqual([]);
    expect(await accounts(key)).toEqual([]);
    expect((await pawl.runs.get(greeted)).phase).toBe("awaiting_signal");
  });

  it("values and keys arrive as they were given, whatever is in them", async () => {
    const value = [
      "\"'\\{}[],",
      "? ?? \\? $1 :name %s",
      "é 😀 \n\t",
      "",
      "NULL",
      { nested: [null, 1.5, true] },
    ];
    const bytes = Uint8Array.of(0, 1, 92, 255);
    const at = new Date(Date.now() - 1_000);
    const { runId } = await library.transaction((tx) =>
      pawl.within(tx).start(
        echo,
        { value },
        {
          at,
          uniqueKey: bytes,
          idempotencyKey: `? "${name}" \\ {}`,
          partitionKey: "$1 ?",
          retention: "1d",
        },
      ),
    );
    expect(await pawl.result(runId)).toEqual(value);
    expect(
      await sql("select idempotency_key, unique_key, partition_key, eligible_at from runs where id = $1", [
        runId,
      ]),
    ).toEqual([
      {
        idempotency_key: `? "${name}" \\ {}`,
        unique_key: Buffer.from(bytes),
        partition_key: "$1 ?",
        eligible_at: at,
      },
    ]);
  });

  it("a taken key answers with its holder, also when this transaction has taken it", async () => {
    const key = `taken ${name}`;
    const before = await pawl.start(echo, { value: 1 }, { idempotencyKey: key });
    await pawl.result(before.runId);
    await library.transaction(async (tx) => {
      const within = pawl.within(tx);
      expect(await within.start(echo, { value: 2 }, { idempotencyKey: key })).toEqual({
        runId: before.runId,
        created: false,
        status: "completed",
      });
      const own = await within.start(echo, { value: 2 }, { uniqueKey: key, delay: "1h" });
      expect(await within.start(echo, { value: 3 }, { uniqueKey: key })).toEqual({ ...own, created: false });
      await pawl.within(tx).signal(own.runId, "undeclared", 1, { dedupKey: "once" });
      expect(await pawl.within(tx).signal(own.runId, "undeclared", 2, { dedupKey: "once" })).toEqual({
        delivered: false,
      });
    });
  });

  it("two keys with different holders are a KeyConflict, and abort the transaction", async () => {
    const key = `conflict ${name}`;
    await pawl.startMany(echo, [
      { input: { value: 1 }, idempotencyKey: key, delay: "1h" },
      { input: { value: 2 }, uniqueKey: key, delay: "1h" },
    ]);
    const conflict = library.transaction(async (tx, insert) => {
      await insert(key);
      await pawl.within(tx).start(echo, { value: 3 }, { idempotencyKey: key, uniqueKey: key });
    });
    await expect(conflict).rejects.toBeInstanceOf(KeyConflict);
    await expect(conflict).rejects.toThrow(/^item 0: the unique key is held by run \d+/);
    expect(await accounts(key)).toEqual([]);
  });

  it("what is refused by the checks, or answered, leaves the transaction usable", async () => {
    const key = `refused ${name}`;
    const ended = await pawl.start(echo, { value: 1 });
    await pawl.result(ended.runId);
    await library.transaction(async (tx, insert) => {
      const within = pawl.within(tx);
      await expect(within.start(echo, { value: 1n })).rejects.toMatchObject({ code: "NotSerializable" });
      await expect(within.start(echo, { value: 1 }, { delay: -1 })).rejects.toBeInstanceOf(InvalidOption);
      await expect(within.signal("64000000000", "hello")).rejects.toBeInstanceOf(RunNotFound);
      await expect(within.signal(ended.runId, "hello")).rejects.toBeInstanceOf(RunEnded);
      expect(await within.startMany(echo, [])).toEqual([]);
      await insert(key);
    });
    expect(await accounts(key)).toHaveLength(1);
  });

  it("what the database refuses is one of Pawl's errors, with the message of the database alone", async () => {
    const unknownLimit = library.transaction((tx) =>
      pawl.within(tx).start(echo, { value: 1 }, { rateLimit: "nobody-set-it" }),
    );
    await expect(unknownLimit).rejects.toBeInstanceOf(InvalidOption);
    await expect(unknownLimit).rejects.toThrow(/^there is no rate limit "nobody-set-it"/);
  });

  it("a database without the schema of Pawl is an error that names migrate", async () => {
    const elsewhere = connect(url, { schema: "no?where$1" });
    const missing = library.transaction((tx) => elsewhere.within(tx).start(echo, { value: 1 }));
    await expect(missing).rejects.toMatchObject({ code: "Unavailable" });
    await expect(missing).rejects.toThrow(/schema "no\?where\$1" .*run migrate\(/);
    await elsewhere.close();
  });

  it("what is in no transaction is refused, and the message says what to give", () => {
    expect(() => pawl.within(library.outside as never)).toThrow(InvalidOption);
    expect(() => pawl.within(library.outside as never)).toThrow(
      /take a client|in no transaction: call .*transaction|sql\.begin/,
    );
  });
});
