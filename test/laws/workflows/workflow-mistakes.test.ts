import { InvalidOption, type RunFailed, workflow, type WorkflowContext } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { journalOf, makeDue, suspended } from "../../support/journal.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

describe("mistakes", () => {
  it("the same name twice is an error that names it and says what to do", async () => {
    const twice = workflow({
      name: "twice",
      run: async ({ step }) => {
        for (const n of [1, 2]) await step.run("charge", () => n);
      },
    });
    await serve([twice]);
    const error = await pawl.result((await pawl.start(twice)).runId).catch((thrown: unknown) => thrown);
    expect((error as RunFailed).error).toMatchObject({ code: "InvalidOption" });
    expect((error as RunFailed).message).toMatch(/step "charge" was called before.*charge-\$\{index\}/s);
  });

  it("the same name twice is an error also for steps of different kinds, at the same time, and after a resume", async () => {
    const caught: string[] = [];
    const mixed = workflow({
      name: "mixed-names",
      run: async ({ step }) => {
        const first = step.run("same", () => 1);
        await step.sleep("same", 1).catch((error: Error) => caught.push(error.name));
        await first;
        await step.sleep("nap", 1);
        await step.run("same", () => 2).catch((error: Error) => caught.push(error.name));
      },
    });
    await serve([mixed]);
    await pawl.result((await pawl.start(mixed)).runId);
    expect(caught).toEqual(Array(3).fill("InvalidOption"));
  });

  it("a step recorded as another kind than it is called is NondeterministicWorkflow, naming both", async () => {
    let isChanged = false;
    const changed = workflow({
      name: "changed",
      run: async ({ step }) => {
        if (isChanged) await step.waitForEvent("first");
        else await step.run("first", () => 1);
        await step.waitForEvent("again");
      },
    });
    await serve([changed]);
    const { runId } = await pawl.start(changed);
    await suspended(database, runId);
    isChanged = true;
    await pawl.signal(runId, "again", {});
    await expect(pawl.result(runId)).rejects.toMatchObject({
      error: {
        code: "NondeterministicWorkflow",
        message: expect.stringMatching(/"first" is recorded as step\.run.*step\.waitForEvent/s) as string,
      },
    });
  });

  it("a pending step that is called as another kind is NondeterministicWorkflow too", async () => {
    let isChanged = false;
    const pending = workflow({
      name: "changed-pending",
      run: async ({ step }) => {
        if (isChanged) await step.run("nap", () => 1);
        else await step.sleep("nap", "1h");
      },
    });
    await serve([pending]);
    const { runId } = await pawl.start(pending);
    await suspended(database, runId);
    isChanged = true;
    await makeDue(database, runId);
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "NondeterministicWorkflow" } });
  });

  it.each<[string, (step: WorkflowContext["step"]) => Promise<unknown>, RegExp]>([
    ["a bad name", ({ run }) => run("no spaces", () => 1), /name of a step must be/],
    ["no name", ({ run }) => run(undefined as never, () => 1), /name of a step must be/],
    ["no function", ({ run }) => run("x", 1 as never), /the function of step "x"/],
    ["an unknown option", ({ run }) => run("x", () => 1, { retries: 3 } as never), /retries/],
    ["no attempts", ({ run }) => run("x", () => 1, { retry: { attempts: 0 } }), /attempts/],
    [
      "an unknown backoff",
      ({ run }) => run("x", () => 1, { retry: { backoff: { kind: "log" as never } } }),
      /kind/,
    ],
    ["a jitter over 1", ({ run }) => run("x", () => 1, { retry: { backoff: { jitter: 2 } } }), /jitter/],
    ["a bad duration", ({ sleep }) => sleep("x", "soon" as never), /the time to sleep/],
    ["a negative duration", ({ sleep }) => sleep("x", -1), /the time to sleep/],
    ["an invalid Date", ({ sleep }) => sleep("x", new Date(Number.NaN)), /invalid Date/],
    [
      "a bad event",
      ({ waitForEvent }) => waitForEvent("x", { event: "no spaces" }),
      /name of a signal must be/,
    ],
    [
      "a match that is no object",
      ({ waitForEvent }) => waitForEvent("x", { match: 1 as never }),
      /match must be/,
    ],
    ["a bad timeout", ({ waitForEvent }) => waitForEvent("x", { timeout: "1y" as never }), /timeout/],
    ["an unknown option of a wait", ({ waitForEvent }) => waitForEvent("x", { until: 1 } as never), /until/],
    ["no definition", ({ invoke }) => invoke("x", {} as "x", null), /takes a definition/],
    ["a bad name of a definition", ({ invoke }) => invoke("x", "No Name", null), /name of a definition/],
    ["an unknown option of a start", ({ invoke }) => invoke("x", "y", null, { prio: 1 } as never), /prio/],
  ])("%s is an InvalidOption thrown at the call, and nothing is recorded", async (what, call, message) => {
    let thrown: unknown;
    const name = `mistake-${what.replaceAll(/\W/g, "-").toLowerCase()}`;
    const mistaken = workflow({
      name,
      run: async ({ step }) => {
        thrown = await call(step).catch((error: unknown) => error);
        return "went on";
      },
    });
    const worker = await serve([mistaken]);
    const { runId } = await pawl.start(mistaken);
    expect(await pawl.result(runId)).toBe("went on");
    await worker.stop();
    expect(thrown).toBeInstanceOf(InvalidOption);
    expect((thrown as Error).message).toMatch(message);
    expect(await journalOf(database, runId)).toEqual([]);
  });

  it.each(["step", "body"])("a %s that throws what does not say what it is fails the run", async (where) => {
    const hostile = new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error("hands off");
        },
      },
    );
    // What is no error is not thrown by a statement.
    const refuse = () => new Promise<never>((_resolve, reject: (value: unknown) => void) => reject(hostile));
    const poison = workflow({
      name: `hostile-${where}`,
      run: ({ step }) =>
        where === "body" ? refuse() : step.run("poison", refuse, { retry: { attempts: 1 } }),
    });
    await serve([poison]);
    const error = await pawl.result((await pawl.start(poison)).runId).catch((thrown: unknown) => thrown);
    expect((error as RunFailed).error.message).toMatch(/not an Error was thrown: .*when it is read/);
  });

  it("a bad definition is refused where it is written", () => {
    expect(() => workflow({ name: "No", run: async () => null })).toThrow(InvalidOption);
    expect(() => workflow({ name: "no-run" } as never)).toThrow(/run/);
    expect(() => workflow({ name: "x", run: async () => null, steps: {} } as never)).toThrow(/steps/);
  });
});
