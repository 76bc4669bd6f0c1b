import { setImmediate as turn } from "node:timers/promises";
import { workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, recordedBy } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

describe("steps that nobody waits for", () => {
  it("an unawaited step that fails does not end the process or the run", async () => {
    const unhandled: unknown[] = [];
    const listener = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", listener);
    const careless = workflow({
      name: "careless",
      run: async ({ step }) => {
        void step.run("fails", () => Promise.reject(new Error("unheard")), { retry: { attempts: 1 } });
        void step.run("bad name", () => 1);
        void step.invoke("bad-input", "careless", 1n);
        await step.run("other", async () => turn());
        await step.sleep("nap", 1);
        return "fine";
      },
    });
    await serve([careless]);
    const { runId } = await pawl.start(careless);
    expect(await pawl.result(runId)).toBe("fine");
    for (let turns = 0; turns < 20; turns++) await turn();
    process.off("unhandledRejection", listener);
    expect(unhandled).toEqual([]);
    expect(await recordedBy(database, runId)).toEqual(expect.arrayContaining(["fails", "nap", "other"]));
  });

  it("unawaited steps under way when the body ends are aborted and not recorded", async () => {
    const running = gate();
    const signals: AbortSignal[] = [];
    const leaving = workflow({
      name: "leaving",
      run: async ({ step }) => {
        void step.run("left", async ({ signal }) => {
          signals.push(signal);
          await running.pass();
        });
        void step.sleep("left-sleep", "1h");
        await step.run("kept", () => 1);
        return "left";
      },
    });
    await serve([leaving]);
    const { runId } = await pawl.start(leaving);
    expect(await pawl.result(runId)).toBe("left");
    expect(signals[0]!.aborted).toBe(true);
    running.open();
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(await recordedBy(database, runId)).toEqual(["kept"]);
  });

  it("steps called after the body has ended neither run nor record, and never answer", async () => {
    const over = gate();
    const late: string[] = [];
    const posthumous = workflow({
      name: "posthumous",
      run: async ({ step }) => {
        void (async () => {
          await over.pass();
          late.push("begun");
          const answers = [
            step.run("late-run", () => late.push("run")),
            step.sleep("late-sleep", 0),
            step.waitForEvent("late-wait"),
            step.invoke("late-invoke", "posthumous"),
          ];
          for (const answer of answers)
            answer.then(
              () => late.push("answer"),
              () => late.push("error"),
            );
        })();
        return "over";
      },
    });
    await serve([posthumous]);
    const { runId } = await pawl.start(posthumous);
    expect(await pawl.result(runId)).toBe("over");
    over.open();
    await until("it was called", () => late.length > 0);
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(late).toEqual(["begun"]);
    expect(await journalOf(database, runId)).toEqual([]);
  });

  it("an invoke whose input is still being checked when the body ends starts nothing", async () => {
    const checking = gate();
    const ending = gate();
    const child = workflow({
      name: "hasty-child",
      input: z.number().refine(async () => (await checking.pass(), true)),
      run: async () => null,
    });
    const parent = workflow({
      name: "hasty",
      output: z.string().refine(async () => (await ending.pass(), true)),
      run: async ({ step }) => {
        void step.invoke("child", child, 1);
        await step.run("one", () => 1);
        return "gone";
      },
    });
    await serve([parent]);
    const { runId } = await pawl.start(parent);
    await until("the body has ended", () => checking.entered() && ending.entered());
    checking.open();
    for (let turns = 0; turns < 50; turns++) await turn();
    ending.open();
    expect(await pawl.result(runId)).toBe("gone");
    expect(await journalOf(database, runId)).toMatchObject([{ name: "one" }]);
    expect(await sql("select from runs where parent_id = $1", [runId])).toEqual([]);
  });
});
