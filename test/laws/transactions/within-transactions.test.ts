import knexOf from "knex";
import { connect, InvalidOption, job, machine, type OpenTransaction, type } from "pawl";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent, testEngine } from "../../support/engine.js";
import { postgresJs } from "../../support/libraries/libraries.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql, url } = database;
const { pawl, serve } = testEngine(database);

const echo = job({ name: "echo", input: type<{ n: number }>(), run: (_ctx, input) => input.n });
const adding = machine({
  name: "adding",
  state: type<{ sum: number }>(),
  steps: {
    start: (ctx) => ctx.awaitSignal("add", "sum", ctx.state),
    sum: (ctx) => ctx.done(ctx.state.sum + ctx.awaited.length),
  },
});
await serve([echo, adding]);
/** A run that waits for a signal. */
const waiting = async () => {
  const { runId } = await pawl.start(adding, { sum: 0 });
  await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
  return runId;
};
const begun = async (how = "begin"): Promise<pg.Client> => {
  const client = await database.connect();
  await client.query(how);
  return client;
};

describe("an open transaction", () => {
  it("that has signalled a run delays that run alone", async () => {
    const [touched, other] = [await waiting(), await waiting()];
    const client = await begun();
    await pawl.within(client).signal(touched, "add");
    const late = pawl.signal(touched, "add");
    await pawl.signal(other, "add");
    expect(await pawl.result(other)).toBe(1);
    const { runId } = await pawl.start(echo, { n: 1 });
    expect(await pawl.result(runId)).toBe(1);
    expect((await pawl.runs.get(touched)).phase).toBe("awaiting_signal");
    await client.query("commit");
    expect(await pawl.result(touched)).toBeGreaterThan(0);
    await late.catch(() => {});
  });

  it("that has started a run with a key makes others with that key wait, and nobody else", async () => {
    const client = await begun();
    const own = await pawl.within(client).start(echo, { n: 1 }, { uniqueKey: "held", delay: "1h" });
    let isAnswered = false;
    const same = pawl.start(echo, { n: 2 }, { uniqueKey: "held" }).finally(() => (isAnswered = true));
    await Promise.all([pawl.start(echo, { n: 3 }, { uniqueKey: "other" }), pawl.start(echo, { n: 4 })]);
    expect(isAnswered).toBe(false);
    await client.query("commit");
    expect(await same).toEqual({ ...own, created: false });
  });

  it("never starts a run already claimed, though a worker of this process has a slot", async () => {
    const client = await begun();
    const { runId } = await pawl.within(client).start(echo, { n: 1 });
    const { rows } = await client.query("select status, locked_by from runs where id = $1", [runId]);
    expect(rows).toEqual([{ status: "runnable", locked_by: null }]);
    await client.query("commit");
    expect(await pawl.result(runId)).toBe(1);
  });

  it("keeps its own settings, except that its commit is durable", async () => {
    const client = await begun();
    await client.query("set local synchronous_commit = off");
    const runId = await waiting();
    await pawl.within(client).start(echo, { n: 1 }, { uniqueKey: "settings" });
    await pawl.within(client).signal(runId, "add");
    const { rows } = await client.query(
      "select current_setting('lock_timeout') as lock, current_setting('search_path') as path, current_setting('synchronous_commit') as sync",
    );
    expect(rows).toEqual([{ lock: "0", path: "pawl, public", sync: "on" }]);
    await client.query("rollback");
  });

  it("goes on after a savepoint that it has rolled back to", async () => {
    const client = await begun();
    const kept = await pawl.within(client).start(echo, { n: 1 });
    await client.query("savepoint before");
    const lost = await pawl.within(client).start(echo, { n: 2 });
    await client.query("rollback to before");
    await client.query("commit");
    expect(await pawl.result(kept.runId)).toBe(1);
    await expect(pawl.runs.get(lost.runId)).rejects.toMatchObject({ code: "RunNotFound" });
  });

  it("may start 10,000 runs in one call", async () => {
    const client = await begun();
    const started = await pawl.within(client).startMany(
      echo,
      Array.from({ length: 10_000 }, (_, n) => ({ input: { n }, queue: "nobody-serves-it" })),
    );
    await client.query("commit");
    const ids = started.map(({ runId }) => BigInt(runId));
    expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)));
    const rows = await sql("select input from runs where id = $1", [started[9_999]!.runId]);
    expect(rows).toEqual([{ input: { n: 9_999 } }]);
  });
});

describe.each(["repeatable read", "serializable"])("a transaction that is %s", (level) => {
  it("starts and signals", async () => {
    const runId = await waiting();
    const client = await begun(`begin isolation level ${level}`);
    const started = await pawl.within(client).start(echo, { n: 7 }, { idempotencyKey: `new ${level}` });
    await pawl.within(client).signal(runId, "add");
    await client.query("commit");
    expect(await pawl.result(started.runId)).toBe(7);
    expect(await pawl.result(runId)).toBe(1);
  });

  it("fails to serialize, by the error of its library, when its key was taken after it had begun", async () => {
    const client = await begun(`begin isolation level ${level}`);
    await client.query("select from runs limit 1");
    const key = `taken meanwhile ${level}`;
    const { runId } = await pawl.start(echo, { n: 1 }, { idempotencyKey: key });
    const failed = pawl.within(client).start(echo, { n: 2 }, { idempotencyKey: key });
    await expect(failed).rejects.toMatchObject({ code: "40001" });
    await client.query("rollback");
    // Its worker writes the holder until it has ended.
    await pawl.result(runId);
    // Again, as the error asks for: now it sees the holder.
    await client.query(`begin isolation level ${level}`);
    expect(await pawl.within(client).start(echo, { n: 2 }, { idempotencyKey: key })).toMatchObject({
      runId,
      created: false,
    });
    await client.query("commit");
  });

  it("fails to serialize when the run it signals has changed after it had begun", async () => {
    const { runId } = await pawl.start(adding, { sum: 0 }, { queue: "nobody-serves-it" });
    const client = await begun(`begin isolation level ${level}`);
    await client.query("select from runs limit 1");
    await pawl.signal(runId, "add");
    await expect(pawl.within(client).signal(runId, "add")).rejects.toMatchObject({ code: "40001" });
    await client.query("rollback");
    expect(await sql("select seq from signals where run_id = $1", [runId])).toEqual([{ seq: 1 }]);
  });
});

describe("after the commit", () => {
  // Neither polls nor repairs: what it executes it was told of.
  const told = job({ name: "told", queue: "told", run: () => "told" });
  const ready = serve([told], { pollInterval: "1h", maxPollInterval: "1h", reapInterval: "1h" });

  it("of a client of pg the workers of this process are told, once per transaction", async () => {
    await ready;
    const client = await begun();
    for (let count = 0; count < 20; count++) await pawl.within(client).start(told);
    const { runId } = await pawl.within(client).start(told);
    expect(client.listenerCount("drain")).toBe(1);
    await client.query("commit");
    expect(await pawl.result(runId, { timeout: "100s" })).toBe("told");
    expect(client.listenerCount("drain")).toBe(0);
  });

  it("of a transaction of Knex the workers of this process are told", async () => {
    await ready;
    const knex = knexOf({ client: "pg", connection: url });
    const { runId } = await knex.transaction((trx) => pawl.within(trx).start(told));
    expect(await pawl.result(runId, { timeout: "100s" })).toBe("told");
    await expect(
      knex.transaction(async (trx) => {
        await pawl.within(trx).start(told);
        throw new Error("rolled back");
      }),
    ).rejects.toThrow("rolled back");
    await knex.destroy();
  });
});

describe("what is given to within", () => {
  const nothing = (given: unknown): void => void pawl.within(given as OpenTransaction);

  it.each([
    [undefined, /not undefined/],
    [null, /not null/],
    ["postgres://user:secret@host/db", /not a string/],
    [7, /not a number/],
    [{}, /not an object of class Object/],
    [new Map(), /not an object of class Map/],
    [() => {}, /not a function/],
  ])("%s is refused, and the message says what is allowed", (given, message) => {
    expect(() => nothing(given)).toThrow(InvalidOption);
    expect(() => nothing(given)).toThrow(message);
    expect(() => nothing(given)).toThrow(/a client of pg .* Kysely, Drizzle, Knex or Prisma/);
    expect(() => nothing(given)).not.toThrow(/secret/);
  });

  it("must be in a transaction, if it is a client of pg, before and after", async () => {
    const client = await database.connect();
    const within = pawl.within(client);
    await expect(within.start(echo, { n: 1 })).rejects.toThrow(
      /in no transaction: await client.query\("begin"\)/,
    );
    await client.query("begin");
    await within.start(echo, { n: 1 });
    await client.query("commit");
    await expect(within.signal("64", "add")).rejects.toBeInstanceOf(InvalidOption);
  });

  it("needs no connection of the client's own, but a client that was not closed", async () => {
    const nowhere = connect("postgres://nobody@localhost:1/nothing", { logger: silent });
    const client = await begun();
    const { runId } = await nowhere.within(client).start(echo, { n: 5 });
    await client.query("commit");
    expect(await pawl.result(runId)).toBe(5);
    await nowhere.close();
    expect(() => nowhere.within(client)).toThrow(/closed/);
  });

  it("may parse and name values as it likes", async () => {
    const odd = new pg.Client({
      connectionString: url,
      types: {
        getTypeParser: (oid: number) => (text: string | Buffer) => (oid === 25 ? text : { oid, text }),
      },
    });
    await odd.connect();
    await odd.query("begin");
    const { runId, created } = await pawl.within(odd).start(echo, { n: 3 });
    expect(created).toBe(true);
    await odd.query("commit");
    await odd.end();
    expect(await pawl.result(runId)).toBe(3);
  });

  it("may be a savepoint of postgres.js", async () => {
    const client = postgresJs(url);
    const ids: string[] = [];
    await client.begin(async (outer) => {
      ids.push((await pawl.within(outer).start(echo, { n: 1 })).runId);
      await outer
        .savepoint(async (inner) => {
          ids.push((await pawl.within(inner).start(echo, { n: 2 })).runId);
          throw new Error("back to the savepoint");
        })
        .catch(() => {});
    });
    await client.end();
    expect(await pawl.result(ids[0]!)).toBe(1);
    await expect(pawl.runs.get(ids[1]!)).rejects.toMatchObject({ code: "RunNotFound" });
  });
});
