import { job, signal, type Transaction, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { makeLedger } from "../../support/ledger.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { number, write, written } = await makeLedger(database);
const { sql } = database;

describe("step.transaction", () => {
  it("commits the user's SQL together with the journal entry, and gives the result as JSON", async () => {
    const n = number();
    const transfer = workflow({
      name: "transfer",
      run: async (ctx) => {
        const result = await ctx.step.transaction("move", async (tx) => {
          await write(tx, "transfer", n);
          const { rows } = await tx.query<{ n: number }>("select n from public.ledger where who = $1", [
            "transfer",
          ]);
          return { rows, at: new Date(0) };
        });
        return result;
      },
    });
    await serve([transfer]);
    const { runId } = await pawl.start(transfer, null);
    expect(await pawl.result(runId)).toEqual({ rows: [{ n }], at: "1970-01-01T00:00:00.000Z" });
    expect(await written("transfer")).toEqual([n]);
    expect(await pawl.runs.steps(runId)).toMatchObject([
      { name: "move", kind: "transaction", status: "completed" },
    ]);
  });

  it("is not run again on replay", async () => {
    const n = number();
    let calls = 0;
    const slept = workflow({
      name: "slept",
      run: async (ctx) => {
        const first = await ctx.step.transaction("move", async (tx) => {
          calls++;
          await write(tx, "slept", n);
          return calls;
        });
        await ctx.step.waitForEvent("go");
        return first;
      },
    });
    await serve([slept]);
    const { runId } = await pawl.start(slept, null);
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    await pawl.signal(runId, "go");
    expect(await pawl.result(runId)).toBe(1);
    expect(await written("slept")).toEqual([n]);
  });

  it("is rolled back by an error, which is an ordinary error of the step: tried again, then StepFailed", async () => {
    const n = number();
    const attempts: number[] = [];
    const failing = workflow({
      name: "failing-transaction",
      run: async (ctx) => {
        try {
          await ctx.step.transaction(
            "move",
            async (tx, { attempt }) => {
              attempts.push(attempt);
              await write(tx, "failing", n);
              throw new Error(`attempt ${attempt}`);
            },
            { retry: { attempts: 2, backoff: { base: 1 } } },
          );
        } catch (error) {
          return (error as Error).message;
        }
        return "no error";
      },
    });
    await serve([failing]);
    const { runId } = await pawl.start(failing, null);
    expect(await pawl.result(runId)).toBe('step "move" failed: attempt 1');
    expect(attempts).toEqual([0, 1]);
    expect(await written("failing")).toEqual([]);
  });

  it("is rolled back by what the commit itself refuses, a result that JSON cannot carry, or its own end", async () => {
    const n = number();
    await sql("insert into public.ledger values ('taken', $1)", [n]);
    const once = { retry: { attempts: 1 } };
    const refused = workflow({
      name: "refused-transactions",
      run: async (ctx) => {
        const messages: string[] = [];
        const note = (error: Error): number =>
          messages.push(error.message.replace(/^step "[^"]+" failed: /, ""));
        await ctx.step
          .transaction("deferred", (tx) => write(tx, "refused", n).then(() => 1), once)
          .catch(note);
        const unserializable = (tx: Transaction): Promise<number> =>
          write(tx, "refused", n).then(() => 1n as never);
        await ctx.step.transaction("bigint", unserializable, once).catch(note);
        await ctx.step.transaction("ended", (tx) => tx.query("rollback").then(() => 1), once).catch(note);
        const swallowed = (tx: Transaction): Promise<number> =>
          tx.query("select 1 / 0").then(
            () => 1,
            () => 2,
          );
        await ctx.step.transaction("swallowed", swallowed, once).catch(note);
        return messages;
      },
    });
    await serve([refused]);
    const { runId } = await pawl.start(refused, null);
    expect(await pawl.result(runId)).toEqual([
      expect.stringContaining("duplicate key"),
      expect.stringContaining("is a BigInt"),
      "the transaction was ended by the step itself; leave its end to Pawl",
      expect.stringContaining("a statement in the transaction failed, and its error was not thrown on"),
    ]);
    expect(await written("refused")).toEqual([]);
  });

  it("commits nothing once the run is cancelled", async () => {
    const n = number();
    let begun = (): void => {};
    const isBegun = new Promise<void>((resolve) => (begun = resolve));
    let goOn = (): void => {};
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    let aborted: boolean | undefined;
    const cancelled = workflow({
      name: "cancelled-transaction",
      run: (ctx) =>
        ctx.step.transaction("move", async (tx, step) => {
          await write(tx, "cancelled", n);
          begun();
          await mayGoOn;
          aborted = step.signal.aborted;
          return 1;
        }),
    });
    await serve([cancelled]);
    const { runId } = await pawl.start(cancelled, null);
    await isBegun;
    await pawl.runs.cancel(runId);
    goOn();
    await until("its holder lets it go", async () => {
      const [row] = await sql<{ locked_by: string | null }>("select locked_by from runs where id = $1", [
        runId,
      ]);
      return row!.locked_by === null;
    });
    expect(aborted).toBe(true);
    expect(await written("cancelled")).toEqual([]);
    expect(await pawl.runs.steps(runId)).toEqual([]);
  });

  it("blocks nobody while it is open: the run can be signalled, and other runs go on", async () => {
    const n = number();
    let goOn = (): void => {};
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    let begun = (): void => {};
    const isBegun = new Promise<void>((resolve) => (begun = resolve));
    const slow = workflow({
      name: "slow-transaction",
      run: async (ctx, wait: boolean) => {
        if (!wait) return ctx.step.run("quick", () => "quick");
        await ctx.step.transaction("move", async (tx) => {
          await write(tx, "slow", n);
          begun();
          await mayGoOn;
        });
        return ctx.step.waitForEvent("go");
      },
    });
    await serve([slow]);
    const { runId } = await pawl.start(slow, true);
    await isBegun;
    await pawl.signal(runId, "go", { early: true });
    const other = await pawl.start(slow, false);
    expect(await pawl.result(other.runId)).toBe("quick");
    goOn();
    expect(await pawl.result(runId)).toEqual({ early: true });
    expect(await written("slow")).toEqual([n]);
  });

  it("gives a tx that is of no use once the transaction has ended", async () => {
    const n = number();
    let late: Promise<unknown> | undefined;
    const slow = workflow({
      name: "late-transaction",
      run: async (ctx) => {
        const step = ctx.step.transaction(
          "move",
          async (tx) => {
            await write(tx, "late", n);
            late = new Promise((resolve) => setTimeout(resolve, 300)).then(() => write(tx, "late", n + 1));
            await late;
          },
          { retry: { attempts: 1 } },
        );
        return step.then(
          () => "no error",
          (error: Error) => error.message,
        );
      },
    });
    number();
    await serve([slow], { maxStepDuration: 100 });
    const { runId } = await pawl.start(slow, null);
    expect(await pawl.result(runId)).toContain("ran longer than 100 ms");
    await expect(late).rejects.toThrow("the transaction of this step has ended");
    expect(await written("late")).toEqual([]);
  });

  it("leaves nothing in its session for the next", async () => {
    const settings = workflow({
      name: "settings",
      run: async (ctx) => {
        const timeout = (tx: Transaction): Promise<string> =>
          tx
            .query<{ timeout: string }>("select current_setting('statement_timeout') as timeout")
            .then(({ rows }) => rows[0]!.timeout);
        await ctx.step.transaction("set", async (tx) => {
          await tx.query("set statement_timeout = '7s'");
        });
        return ctx.step.transaction("get", timeout);
      },
    });
    await serve([settings]);
    const { runId } = await pawl.start(settings, null);
    expect(await pawl.result(runId)).toBe("0");
  });

  it("that waits for another that waits for it gives way, and both come through", async () => {
    const meeting = { begun: 0 };
    const mutual = workflow({
      name: "mutual",
      signals: { hello: signal() },
      run: async (ctx, other: string) =>
        ctx.step.transaction(
          "greet",
          async (tx) => {
            await pawl.within(tx).signal(other, "hello");
            meeting.begun++;
            await until("both have begun", () => meeting.begun >= 2);
            return "greeted";
          },
          { retry: { attempts: 1 } },
        ),
    });
    await serve([mutual]);
    const [first, second] = [String(2n ** 40n * 64n), String((2n ** 40n + 1n) * 64n)];
    await sql("select setval('run_ids', $1)", [String(2n ** 40n - 1n)]);
    const runs = [await pawl.start(mutual, second), await pawl.start(mutual, first)];
    expect(runs.map(({ runId }) => runId)).toEqual([first, second]);
    const ended = await Promise.allSettled(runs.map(({ runId }) => pawl.result(runId, { timeout: "100s" })));
    // The one that comes second may find the other ended.
    expect(ended.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
    for (const one of ended) {
      if (one.status === "rejected")
        expect(String(one.reason)).toMatch(/has ended: it takes no more signals/);
    }
  });

  it("can start and signal within itself", async () => {
    const started = job({ name: "started-within", run: () => "ran" });
    const starting = workflow({
      name: "starting-within",
      run: async (ctx) =>
        ctx.step.transaction("enqueue", async (tx) => {
          const { runId } = await pawl.within(tx).start(started, null);
          return runId;
        }),
    });
    await serve([started, starting]);
    const { runId } = await pawl.start(starting, null);
    const childId = await pawl.result(runId);
    expect(await pawl.result(childId)).toBe("ran");
  });
});
