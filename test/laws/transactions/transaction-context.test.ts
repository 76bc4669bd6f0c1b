import { job, machine, NonRetryable, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { makeLedger } from "../../support/ledger.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { number, write, written } = await makeLedger(database);
const { sql, url } = database;

describe("ctx.transaction of a job", () => {
  it("commits the SQL and the result together; an error rolls back and is tried again", async () => {
    const n = number();
    const flaky = job({
      name: "flaky-transaction",
      backoff: () => 1,
      run: (ctx) =>
        ctx.transaction(async (tx) => {
          await write(tx, "job", n);
          if (ctx.attempt === 0) throw new Error("once");
          return { attempt: ctx.attempt };
        }),
    });
    await serve([flaky]);
    const { runId } = await pawl.start(flaky, null);
    expect(await pawl.result(runId)).toEqual({ attempt: 1 });
    expect(await written("job")).toEqual([n]);
  });

  it("that the commit refuses is tried again too, until its attempts are used up", async () => {
    const n = number();
    await sql("insert into public.ledger values ('taken', $1)", [n]);
    let calls = 0;
    const refused = job({
      name: "refused-job",
      maxAttempts: 2,
      backoff: () => 1,
      run: (ctx) =>
        ctx.transaction(async (tx) => {
          calls++;
          await write(tx, "refused-job", n);
          return 1;
        }),
    });
    await serve([refused]);
    const { runId } = await pawl.start(refused, null);
    await expect(pawl.result(runId)).rejects.toThrow(/duplicate key/);
    expect(calls).toBe(2);
    expect(await written("refused-job")).toEqual([]);
  });

  it("leaves nothing behind when NonRetryable is thrown in it", async () => {
    const n = number();
    const fatal = job({
      name: "fatal-transaction",
      run: (ctx) =>
        ctx.transaction(async (tx) => {
          await write(tx, "fatal", n);
          throw new NonRetryable("no");
        }),
    });
    await serve([fatal]);
    const { runId } = await pawl.start(fatal, null);
    await expect(pawl.result(runId)).rejects.toThrow("no");
    expect(await written("fatal")).toEqual([]);
  });
});

describe("ctx.transaction of a machine", () => {
  it("commits the SQL and the outcome together, step by step", async () => {
    const [first, second] = [number(), number()];
    const moving = machine({
      name: "moving",
      state: type<{ moved: number }>(),
      steps: {
        start: (ctx) =>
          ctx.transaction(async (tx) => {
            await write(tx, "machine", first);
            return ctx.next("again", { moved: 1 });
          }),
        again: (ctx) =>
          ctx.transaction(async (tx) => {
            await write(tx, "machine", second);
            return ctx.done(ctx.state.moved + 1);
          }),
      },
    });
    await serve([moving]);
    const { runId } = await pawl.start(moving, { moved: 0 });
    expect(await pawl.result(runId)).toBe(2);
    expect(await written("machine")).toEqual([first, second]);
  });

  it("is rolled back when the step throws, and handle decides; handle can use one too", async () => {
    const [lost, kept] = [number(), number()];
    const handled = machine({
      name: "handled",
      steps: {
        start: (ctx) =>
          ctx.transaction(async (tx) => {
            await write(tx, "handled", lost);
            throw new Error("after the insert");
          }),
      },
      handle: (error, ctx) =>
        ctx.transaction(async (tx) => {
          await write(tx, "handled", kept);
          return ctx.done((error as Error).message);
        }),
    });
    await serve([handled]);
    const { runId } = await pawl.start(handled, {});
    expect(await pawl.result(runId)).toBe("after the insert");
    expect(await written("handled")).toEqual([kept]);
  });

  it("is opened once, also when it is asked for twice at a time, and leaves no connection open", async () => {
    const twice = machine({
      name: "twice-at-a-time",
      steps: {
        start: async (ctx) => {
          const both = [ctx.transaction(async () => ctx.done(1)), ctx.transaction(async () => ctx.done(2))];
          return (await Promise.all(both))[0]!;
        },
      },
    });
    await serve([twice]);
    const { runId } = await pawl.start(twice, {});
    await expect(pawl.result(runId)).rejects.toThrow("ctx.transaction can be called once in a step");
    await until("nothing is left open", async () => {
      const open = await sql(
        "select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'",
      );
      return open.length === 0;
    });
  });

  it("must be returned, and used once in a step", async () => {
    const n = number();
    const wrong = machine({
      name: "wrong",
      state: type<{ twice: boolean }>(),
      steps: {
        start: async (ctx) => {
          const outcome = await ctx.transaction(async (tx) => {
            await write(tx, "wrong", n);
            return ctx.done("in it");
          });
          if (!ctx.state.twice) return ctx.done("not returned");
          await ctx.transaction(async () => ctx.done("second"));
          return outcome;
        },
      },
    });
    await serve([wrong]);
    const one = await pawl.start(wrong, { twice: false });
    await expect(pawl.result(one.runId)).rejects.toThrow(/return ctx\.transaction/);
    const two = await pawl.start(wrong, { twice: true });
    await expect(pawl.result(two.runId)).rejects.toThrow("ctx.transaction can be called once in a step");
    expect(await written("wrong")).toEqual([]);
  });
});

it("uses connections of its own: many open transactions leave the engine's calls alone", async () => {
  let open = 0;
  let goOn = (): void => {};
  const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
  const many = job({
    name: "many-transactions",
    run: (ctx, hold: boolean) =>
      hold
        ? ctx.transaction(async (tx) => {
            await tx.query("select 1");
            open++;
            await mayGoOn;
            return 1;
          })
        : 2,
  });
  await serve([many], { url, queues: { default: 20 } });
  const held = await pawl.startMany(
    many,
    Array.from({ length: 10 }, () => ({ input: true })),
  );
  await until("all of them are open", () => open === 10);
  const { runId } = await pawl.start(many, false);
  expect(await pawl.result(runId)).toBe(2);
  goOn();
  await Promise.all(held.map(({ runId: id }) => pawl.result(id)));
});
