/** One log line per failed attempt, failed step and failed run; no payload in any of them. */

import { job, type Logger, machine, NonRetryable, type, workflow } from "pawl";
import * as v from "valibot";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

interface Line {
  readonly message: string | undefined;
  readonly runId?: string;
  readonly step?: string;
  readonly err?: { readonly stack?: string; readonly cause?: { readonly stack?: string } };
}

/** A logger, and the lines that it was given. */
function listening(): { logger: Logger; lines: Line[]; of: (runId: string) => Line[] } {
  const lines: Line[] = [];
  const note = (details: object | string, message?: string): void =>
    void lines.push(typeof details === "string" ? { message: details } : { ...details, message });
  const logger = { debug: note, info: note, warn: note, error: note };
  return { logger, lines, of: (runId) => lines.filter((line) => line.runId === runId) };
}

const retried = "pawl: an attempt failed, another will follow";
const stepFailed = "pawl: a step failed";
const runFailed = "pawl: a run failed";
const here = expect.stringMatching(/log-lines\.test\.[jt]s:\d+:\d+/) as string;

function boom(): never {
  throw Object.assign(new Error("boom"), { code: "E_BOOM" });
}

describe("a failure is logged with run, definition, step, attempt, code, message and stack", () => {
  it("for every attempt of a job, and its end", async () => {
    const { logger, of } = listening();
    const flaky = job({ name: "flaky", version: 2, maxAttempts: 2, backoff: () => 0, run: boom });
    await serve([flaky], { logger });
    const { runId } = await pawl.start(flaky, null);
    await expect(pawl.result(runId)).rejects.toThrow("boom");
    const line = { runId, name: "flaky", version: 2, step: "run", code: "E_BOOM" };
    const err = { name: "Error", message: "boom", code: "E_BOOM", stack: here };
    await until("both are logged", () => of(runId).length === 2);
    expect(of(runId)).toEqual([
      { ...line, attempt: 0, err, message: retried },
      { ...line, attempt: 1, err, message: runFailed },
    ]);
  });

  it("for a step of a machine: a retry by handle, and the end", async () => {
    const { logger, of } = listening();
    const stubborn = machine({
      name: "stubborn",
      steps: { start: (ctx) => ctx.next("pay", {}), pay: boom },
      handle: (error, ctx) => (ctx.attempt === 0 ? ctx.retry(ctx.state, 0) : ctx.stop(error)),
    });
    await serve([stubborn], { logger });
    const { runId } = await pawl.start(stubborn, {});
    await expect(pawl.result(runId)).rejects.toThrow("boom");
    await until("both are logged", () => of(runId).length === 2);
    const line = { runId, name: "stubborn", version: 1, step: "pay", code: "E_BOOM" };
    expect(of(runId)).toMatchObject([
      { ...line, attempt: 0, err: { message: "boom", stack: here }, message: retried },
      { ...line, attempt: 1, err: { message: "boom", stack: here }, message: runFailed },
    ]);
  });

  it("for a step of a workflow: each attempt, the step, and the run with its cause", async () => {
    const { logger, of } = listening();
    const flow = workflow({
      name: "flow",
      run: ({ step }) => step.run("pay", boom, { retry: { attempts: 2, backoff: { base: 1 } } }),
    });
    await serve([flow], { logger });
    const { runId } = await pawl.start(flow, null);
    await expect(pawl.result(runId)).rejects.toThrow("boom");
    await until("all are logged", () => of(runId).length === 3);
    const line = { runId, name: "flow", version: 1, step: "pay" };
    const err = { message: "boom", code: "E_BOOM", stack: here };
    expect(of(runId)).toMatchObject([
      { ...line, attempt: 0, code: "E_BOOM", err, message: retried },
      { ...line, attempt: 1, code: "E_BOOM", err, message: stepFailed },
      { ...line, attempt: 0, code: "StepFailed", err: { cause: err }, message: runFailed },
    ]);
  });

  it("for a step that the workflow catches, and an invoked run", async () => {
    const { logger, of } = listening();
    const bad = job({ name: "bad", maxAttempts: 1, run: boom });
    const flow = workflow({
      name: "catching",
      run: async ({ step }) => {
        await step.run("pay", boom, { retry: { attempts: 1 } }).catch(() => {});
        await step.invoke("child", bad, null).catch(() => {});
        return "went on";
      },
    });
    await serve([bad, flow], { logger });
    const { runId } = await pawl.start(flow, null);
    expect(await pawl.result(runId)).toBe("went on");
    expect(of(runId)).toMatchObject([
      { step: "pay", message: stepFailed, err: { message: "boom", stack: here } },
      { step: "child", message: stepFailed, code: "ChildFailed", err: { cause: { message: "boom" } } },
    ]);
  });
});

describe("a payload does not enter the log by itself", () => {
  const secret = "hunter2-do-not-log";

  it("when a schema refuses the input of a run, whatever its library quotes", async () => {
    const { logger, lines, of } = listening();
    const strict = job({
      name: "strict",
      input: z.object({ password: z.enum(["a", "b"]) }),
      run: () => null,
    });
    const quoting = v.pipe(
      v.string(),
      v.check(
        (given) => given === "",
        (issue) => `not ${JSON.stringify(issue.input)}`,
      ),
    );
    const quoted = workflow({ name: "quoted", input: quoting, run: async () => null });
    await serve([strict, quoted], { logger });
    const one = await pawl.start("strict", { password: secret });
    const two = await pawl.start("quoted", secret);
    for (const { runId } of [one, two]) {
      await expect(pawl.result(runId)).rejects.toThrow("does not match its schema");
      await until("it is logged", () => of(runId).length > 0);
      expect(of(runId)).toMatchObject([
        {
          code: "InvalidInput",
          message: runFailed,
          err: { message: expect.stringMatching(/^input does not match its schema \(left out/) as string },
        },
      ]);
    }
    expect(JSON.stringify(lines)).not.toContain(secret);
  });

  it("when an outcome is refused, or an error of Pawl about a value is wrapped", async () => {
    const { logger, lines, of } = listening();
    const odd = machine({
      name: "odd",
      state: type<{ s: string }>(),
      steps: { start: (ctx) => ctx.state as never },
    });
    const wraps = job({
      name: "wraps",
      run: async (_ctx, input: { s: string }) => {
        await pawl
          .start("odd", {}, { uniqueKey: "one", uniqueScope: input.s as never })
          .catch((error: Error) => {
            throw new NonRetryable(error);
          });
      },
    });
    const flow = workflow({
      name: "refused",
      run: ({ step }, input: { s: string }) =>
        step.run("start", () => pawl.start("odd", {}, { uniqueKey: "one", uniqueScope: input.s as never }), {
          retry: { attempts: 1 },
        }),
    });
    await serve([odd, wraps, flow], { logger });
    const runs = await Promise.all([odd, wraps, flow].map(({ name }) => pawl.start(name, { s: secret })));
    for (const { runId } of runs) {
      await expect(pawl.result(runId)).rejects.toThrow(secret);
      await until("it is logged", () => of(runId).some(({ message }) => message === runFailed));
    }
    expect(JSON.stringify(lines)).not.toContain(secret);
    expect(JSON.stringify(lines)).toContain("left out");
  });

  it("when user code throws an error with more members, or something that is no error", async () => {
    const { logger, lines, of } = listening();
    const rich = job({
      name: "rich",
      maxAttempts: 1,
      run: (_ctx, input: { s: string }) => {
        throw Object.assign(new Error("401"), { config: { headers: { authorization: input.s } } });
      },
    });
    const poor = job({
      name: "poor",
      maxAttempts: 1,
      run: (_ctx, input: { s: string }) => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw { status: 401, body: input.s };
      },
    });
    await serve([rich, poor], { logger });
    for (const definition of [rich, poor]) {
      const { runId } = await pawl.start(definition, { s: secret });
      await expect(pawl.result(runId)).rejects.toThrow();
      await until("it is logged", () => of(runId).length === 1);
    }
    expect(JSON.stringify(lines)).not.toContain(secret);
  });
});

describe("without a logger", () => {
  afterEach(() => vi.restoreAllMocks());

  it("the stack and the causes are printed to standard error below the line", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    const bad = job({
      name: "printed",
      maxAttempts: 1,
      run: () => {
        throw new Error("outer", { cause: new Error("inner") });
      },
    });
    await serve([bad], { logger: undefined });
    const { runId } = await pawl.start(bad, null);
    await expect(pawl.result(runId)).rejects.toThrow("outer");
    await until("it is printed", () => printed.mock.calls.length > 0);
    const lines = String(printed.mock.calls[0]![0]).split("\n");
    expect(lines[0]).toBe(
      `pawl: a run failed: Error: outer {"runId":"${runId}","name":"printed","version":1,"step":"run","attempt":0,"code":"Error"}`,
    );
    expect(lines[1]).toEqual(here);
    expect(lines).toContain("caused by Error: inner");
  });
});
