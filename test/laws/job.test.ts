import { job, NonRetryable, type } from "pawl";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

describe("jobs", () => {
  it("return their result, and the run is done", async () => {
    const double = job({ name: "double", input: type<{ n: number }>(), run: (_ctx, input) => input.n * 2 });
    await serve([double]);
    const { runId, created, status } = await pawl.start(double, { n: 21 });
    expect({ created, status }).toEqual({ created: true, status: "running" });
    expect(await pawl.result(runId)).toBe(42);
  });

  it("are tried again with backoff when they throw, with the attempt counted from 0", async () => {
    const attempts: number[] = [];
    const flaky = job({
      name: "flaky",
      backoff: (attempt) => attempt + 1,
      run: (ctx) => {
        attempts.push(ctx.attempt);
        if (ctx.attempt < 3) throw new Error(`attempt ${ctx.attempt}`);
        return "at last";
      },
    });
    await serve([flaky]);
    const { runId } = await pawl.start(flaky, null);
    expect(await pawl.result(runId)).toBe("at last");
    expect(attempts).toEqual([0, 1, 2, 3]);
  });

  it("fail when their attempts are used up, with the last error", async () => {
    const broken = job({
      name: "broken",
      maxAttempts: 3,
      backoff: () => 0,
      run: (ctx) => Promise.reject(new Error(`attempt ${ctx.attempt}`)),
    });
    await serve([broken]);
    const { runId } = await pawl.start(broken, null);
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { message: "attempt 2" } });
  });

  it("show the error of the last try while they wait for the next", async () => {
    const waiting = job({
      name: "waiting",
      run: () => {
        throw new Error("not yet");
      },
    });
    await serve([waiting]);
    const { runId } = await pawl.start(waiting, null);
    const run = await until("it was tried", async () => {
      const found = await pawl.runs.get(runId);
      return found.attempt === 1 ? found : null;
    });
    expect(run).toMatchObject({ status: "running", phase: "runnable", error: { message: "not yet" } });
    // the default backoff is min(1 s · 2^attempt, 5 min)
    expect(run.eligibleAt!.getTime()).toBeGreaterThan(run.startedAt.getTime() + 900);
  });

  it("fail at once by NonRetryable", async () => {
    const fatal = job({
      name: "fatal",
      run: () => {
        throw new NonRetryable("card refused");
      },
    });
    await serve([fatal]);
    const { runId } = await pawl.start(fatal, null);
    await expect(pawl.result(runId)).rejects.toMatchObject({
      error: { code: "NonRetryable", message: "card refused" },
    });
    expect((await pawl.runs.get(runId)).attempt).toBe(0);
  });

  it("check input and output by their schemas, those of zod and valibot alike", async () => {
    const withZod = job({
      name: "with-zod",
      input: z.object({ n: z.number(), unit: z.string().default("kg") }),
      output: z.object({ text: z.string() }),
      run: (_ctx, input) => ({ text: `${input.n} ${input.unit}` }),
    });
    const withValibot = job({
      name: "with-valibot",
      input: v.object({ n: v.number() }),
      run: (_ctx, input) => input.n + 1,
    });
    await serve([withZod, withValibot]);
    expect(await pawl.result((await pawl.start(withZod, { n: 2 })).runId)).toEqual({ text: "2 kg" });
    expect(await pawl.result((await pawl.start(withValibot, { n: 2 })).runId)).toBe(3);
    await expect(pawl.start(withZod, { n: "two" } as never)).rejects.toMatchObject({
      code: "InvalidInput",
      message: expect.stringContaining("input.n") as string,
    });
    await expect(pawl.start(withValibot, {} as never)).rejects.toMatchObject({ code: "InvalidInput" });
  });

  it("started by name with an input that their schema refuses fail with InvalidInput, without running", async () => {
    let ran = false;
    const strict = job({
      name: "strict",
      input: z.object({ n: z.number() }),
      run: () => {
        ran = true;
      },
    });
    await serve([strict]);
    const { runId } = await pawl.start("strict", { n: "x" });
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "InvalidInput" } });
    expect(ran).toBe(false);
  });

  it("refuse at the first start a schema that does not accept its own output", async () => {
    const unstable = job({
      name: "unstable",
      input: z.string().transform((text) => text.length),
      run: (_ctx, length) => length,
    });
    await expect(pawl.start(unstable, "four")).rejects.toMatchObject({ code: "SchemaNotStable" });
    expect(await sql("select from runs where name = 'unstable'")).toEqual([]);
  });

  it("whose result cannot be stored, or is not what their output schema allows, fail at once: the work is done", async () => {
    let runs = 0;
    const wrong = job({
      name: "wrong-output",
      output: z.object({ ok: z.boolean() }),
      run: () => {
        runs++;
        return { ok: "yes" } as never;
      },
    });
    const unstorable = job({
      name: "unstorable",
      run: () => {
        runs++;
        return { n: 1n } as never;
      },
    });
    await serve([wrong, unstorable]);
    await expect(pawl.result((await pawl.start(wrong)).runId)).rejects.toMatchObject({
      error: { code: "InvalidOutcome", message: expect.stringContaining("result.ok") as string },
    });
    await expect(pawl.result((await pawl.start(unstorable)).runId)).rejects.toMatchObject({
      error: { code: "NotSerializable", message: expect.stringContaining("result.n") as string },
    });
    expect(runs).toBe(2);
  });

  it("that crashed in their last attempt fail with TooManyCrashes, without running again", async () => {
    let ran = 0;
    const crashing = job({ name: "crashing", maxAttempts: 2, run: () => void ran++ });
    const { runId } = await pawl.start(crashing, null);
    await sql("update runs set attempt = 2, crashes = 2 where id = $1", [runId]);
    await serve([crashing]);
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "TooManyCrashes" } });
    expect(ran).toBe(0);
  });

  it("that exceed maxStepDuration get an aborted signal and StepTimeout", async () => {
    let aborted = false;
    const slow = job({
      name: "slow",
      maxAttempts: 1,
      run: (ctx) =>
        new Promise((resolve) => {
          ctx.signal.addEventListener("abort", () => {
            aborted = true;
            resolve("too late");
          });
        }),
    });
    await serve([slow], { maxStepDuration: 50 });
    const { runId } = await pawl.start(slow, null);
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "StepTimeout" } });
    expect(aborted).toBe(true);
  });

  it.each<[string, unknown]>([
    ["undefined", undefined],
    ["null", null],
    ["a number", 1],
    [
      "a proxy that throws",
      new Proxy(
        {},
        {
          get: () => {
            throw new Error("hands off");
          },
        },
      ),
    ],
    [
      "a proxy that does not say what it is",
      new Proxy(
        {},
        {
          getPrototypeOf: () => {
            throw new Error("hands off");
          },
        },
      ),
    ],
    [
      "an error with a getter that throws",
      Object.defineProperty(new Error("x"), "message", {
        get: () => {
          throw new Error("no");
        },
      }),
    ],
    ["a message with a NUL", new Error("a\u0000b")],
    ["a huge message", new Error("x".repeat(100_000))],
  ])("that throw %s fail like any other", async (what, thrown) => {
    const poison = job({
      name: "poison",
      version: 1 + Math.abs([...what].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)),
      maxAttempts: 1,
      run: () => {
        throw thrown;
      },
    });
    const worker = await serve([poison]);
    const { runId } = await pawl.start(poison, null);
    await expect(pawl.result(runId)).rejects.toMatchObject({ code: "RunFailed" });
    await worker.stop();
  });
});
