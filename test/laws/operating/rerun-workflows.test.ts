import { job, RunActive, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { makeDue, recordedBy, suspended } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const once = { retry: { attempts: 1 } } as const;
const failed = (runId: string) =>
  until(`run ${runId} has failed`, async () => (await pawl.runs.get(runId)).status === "failed");

/** Ten steps of which one fails until it is mended. */
const broken = new Set(["step-7"]);
const called: string[] = [];
const tenSteps = workflow({
  name: "ten-steps",
  run: async ({ step }, input: { by: string }) => {
    const results: string[] = [];
    for (let number = 1; number <= 10; number++) {
      const name = `step-${number}`;
      const result = await step.run(
        name,
        () => {
          called.push(name);
          if (broken.has(name)) throw new Error("out of order");
          return `${name} by ${input.by}`;
        },
        once,
      );
      results.push(result);
    }
    return results;
  },
});

async function failAtSeven(): Promise<string> {
  broken.add("step-7");
  const { runId } = await pawl.start(tenSteps, { by: "Ada" });
  await failed(runId);
  broken.delete("step-7");
  called.length = 0;
  return runId;
}

const names = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, index) => `step-${first + index}`);

describe("a rerun of a workflow", () => {
  it("that failed at step 7 of 10 runs steps 7 to 10 only, and the old run stays failed", async () => {
    await serve([tenSteps]);
    const runId = await failAtSeven();
    const rerun = await pawl.runs.rerun(runId);
    expect(rerun.runId).not.toBe(runId);
    expect(await pawl.result(rerun.runId)).toEqual(names(1, 10).map((name) => `${name} by Ada`));
    expect(called).toEqual(names(7, 10));
    expect((await pawl.runs.get(runId)).status).toBe("failed");
    expect((await pawl.runs.steps(runId)).at(-1)).toMatchObject({ name: "step-7", status: "failed" });
  });

  it("from a step runs that step and all later ones; from the start runs all of them", async () => {
    await serve([tenSteps]);
    const runId = await failAtSeven();
    for (const first of [1, 3, 6, 7]) {
      called.length = 0;
      const rerun = await pawl.runs.rerun(runId, { from: `step-${first}` });
      await pawl.result(rerun.runId);
      expect(called).toEqual(names(first, 10));
    }
    called.length = 0;
    const anew = await pawl.runs.rerun(runId, { from: "start" });
    await pawl.result(anew.runId);
    expect(called).toEqual(names(1, 10));
  });

  it("with another input gives it to the steps that run again; recorded steps keep their outcome", async () => {
    await serve([tenSteps]);
    const runId = await failAtSeven();
    const rerun = await pawl.runs.rerun(runId, { input: { by: "Bea" } });
    expect(await pawl.result(rerun.runId)).toEqual([
      ...names(1, 6).map((name) => `${name} by Ada`),
      ...names(7, 10).map((name) => `${name} by Bea`),
    ]);
    expect((await pawl.runs.get(rerun.runId)).input).toEqual({ by: "Bea" });
  });

  it("on another version continues with the code of that version", async () => {
    const versions: string[] = [];
    const mended = workflow({
      name: "ten-steps",
      version: 2,
      run: async ({ step }, input: { by: string }) => {
        const results: string[] = [];
        for (const name of names(1, 8)) {
          results.push(await step.run(name, () => (versions.push(name), `${name} by ${input.by}, mended`)));
        }
        return results;
      },
    });
    await serve([tenSteps]);
    const runId = await failAtSeven();
    await serve([mended]);
    const rerun = await pawl.runs.rerun(runId, { version: 2 });
    await pawl.result(rerun.runId);
    expect(versions).toEqual(names(7, 8));
    expect(await pawl.runs.get(rerun.runId)).toMatchObject({ version: 2 });
  });

  it("keeps the outcomes of sleeps, events and invoked runs before the failed step", async () => {
    let isBroken = true;
    let children = 0;
    const child = job({ name: "prefix-child", run: (_ctx, input: number) => (children++, input * 2) });
    const prefix = workflow({
      name: "prefix",
      run: async ({ step }) => {
        await step.sleep("pause", "1h");
        const paid = await step.waitForEvent("paid", { timeout: "1h" });
        const missed = await step.waitForEvent("never", { timeout: "1h" });
        const doubled = await step.invoke("double", child, 21);
        const last = await step.run(
          "last",
          () => {
            if (isBroken) throw new Error("out of order");
            return "done";
          },
          once,
        );
        return { paid, missed, doubled, last };
      },
    });
    await serve([prefix, child]);
    const { runId } = await pawl.start(prefix);
    const pass = async (name: string): Promise<void> => {
      await suspended(database, runId);
      await makeDue(database, runId);
      await until(`${name} is over`, async () => (await recordedBy(database, runId)).includes(name));
    };
    await pass("pause");
    await pawl.signal(runId, "paid", { euros: 5 });
    await until("it is paid", async () => (await recordedBy(database, runId)).includes("paid"));
    await pass("never");
    await failed(runId);
    isBroken = false;
    const rerun = await pawl.runs.rerun(runId);
    expect(await pawl.result(rerun.runId)).toEqual({
      paid: { euros: 5 },
      missed: null,
      doubled: 42,
      last: "done",
    });
    expect(children).toBe(1);
    expect(await recordedBy(database, rerun.runId)).toEqual(["pause", "paid", "never", "double", "last"]);
  });

  it("starts a failed invoked run again, as a child of the new run", async () => {
    let isBroken = true;
    const fragile = job({
      name: "fragile-child",
      maxAttempts: 1,
      run: () => {
        if (isBroken) throw new Error("out of order");
        return "mended";
      },
    });
    const caller = workflow({ name: "caller", run: ({ step }) => step.invoke("call", fragile) });
    await serve([caller, fragile]);
    const { runId } = await pawl.start(caller);
    await failed(runId);
    isBroken = false;
    const rerun = await pawl.runs.rerun(runId);
    expect(await pawl.result(rerun.runId)).toBe("mended");
    const { runs } = await pawl.runs.list({ parentId: rerun.runId });
    expect(runs.map(({ name, status }) => [name, status])).toEqual([["fragile-child", "completed"]]);
  });

  it("keeps failures that the body had caught and gone on from", async () => {
    const tried: string[] = [];
    let isBroken = true;
    const careful = workflow({
      name: "careful",
      run: async ({ step }) => {
        const fail = (name: string) => () => {
          tried.push(name);
          throw new Error("refused");
        };
        const way = await step
          .run("card", fail("card"), once)
          .catch(() => step.run("invoice", () => (tried.push("invoice"), "invoice")));
        await step.run(
          "ship",
          () => {
            tried.push("ship");
            if (isBroken) throw new Error("out of order");
          },
          once,
        );
        return way;
      },
    });
    await serve([careful]);
    const { runId } = await pawl.start(careful);
    await failed(runId);
    isBroken = false;
    const rerun = await pawl.runs.rerun(runId);
    expect(await pawl.result(rerun.runId)).toBe("invoice");
    expect(tried).toEqual(["card", "invoice", "ship", "ship"]);
  });

  it("of parallel steps runs only those that failed, also if the body threw an error of its own", async () => {
    const broke = new Set(["b", "d"]);
    const tried: string[] = [];
    const parallel = workflow({
      name: "parallel",
      run: async ({ step }, input: { own: boolean }) => {
        const all = ["a", "b", "c", "d"].map((name) =>
          step.run(
            name,
            () => {
              tried.push(name);
              if (broke.has(name)) throw new Error(`${name} is out of order`);
              return name;
            },
            { retry: { attempts: 2, backoff: { kind: "fixed", base: "30ms" } } },
          ),
        );
        if (!input.own) return Promise.all(all);
        const settled = await Promise.allSettled(all);
        const lost = settled.filter(({ status }) => status === "rejected").length;
        if (lost > 0) throw new Error(`${lost} of 4 failed`);
        return settled.length;
      },
    });
    await serve([parallel]);
    const { runId } = await pawl.start(parallel, { own: true });
    await failed(runId);
    broke.clear();
    tried.length = 0;
    const rerun = await pawl.runs.rerun(runId);
    expect(await pawl.result(rerun.runId)).toBe(4);
    expect(tried.toSorted()).toEqual(["b", "d"]);
  });

  it("of a cancelled run continues behind its recorded steps and waits anew", async () => {
    const tried: string[] = [];
    const waits = workflow({
      name: "waits",
      run: async ({ step }) => {
        await step.run("before", () => void tried.push("before"));
        return step.waitForEvent("go");
      },
    });
    await serve([waits]);
    const { runId } = await pawl.start(waits);
    await suspended(database, runId);
    await pawl.runs.cancel(runId);
    const rerun = await pawl.runs.rerun(runId);
    await suspended(database, rerun.runId);
    await pawl.signal(rerun.runId, "go", { now: true });
    expect(await pawl.result(rerun.runId)).toEqual({ now: true });
    expect(tried).toEqual(["before"]);
  });

  it("of a completed run begins anew", async () => {
    let calls = 0;
    const counted = workflow({ name: "counted", run: ({ step }) => step.run("count", () => ++calls) });
    await serve([counted]);
    const { runId } = await pawl.start(counted);
    expect(await pawl.result(runId)).toBe(1);
    const rerun = await pawl.runs.rerun(runId);
    expect(await pawl.result(rerun.runId)).toBe(2);
  });
});

describe("a rerun is refused", () => {
  it("with RunActive for a run that has not ended, and nothing is started", async () => {
    const idle = workflow({ name: "idle", run: ({ step }) => step.waitForEvent("go") });
    await serve([idle]);
    const { runId } = await pawl.start(idle);
    await suspended(database, runId);
    await expect(pawl.runs.rerun(runId)).rejects.toThrow(RunActive);
    await expect(pawl.runs.rerun(runId)).rejects.toMatchObject({ code: "RunActive" });
    expect(await sql("select id from runs where name = 'idle'")).toHaveLength(1);
    await pawl.runs.cancel(runId);
  });

  it("for an unknown step, with the steps of the journal in order", async () => {
    await serve([tenSteps]);
    const runId = await failAtSeven();
    await expect(pawl.runs.rerun(runId, { from: "step-77" })).rejects.toThrow(
      /"step-1", "step-2", "step-3", "step-4", "step-5", "step-6", "step-7"; did you mean "step-7"/,
    );
    await expect(pawl.runs.rerun(runId, { from: "step-77" })).rejects.toMatchObject({
      code: "InvalidOption",
    });
  });

  it("for an unknown run, an unknown option, a state, and an input that is not JSON", async () => {
    await serve([tenSteps]);
    const runId = await failAtSeven();
    await expect(pawl.runs.rerun("64000064")).rejects.toMatchObject({ code: "RunNotFound" });
    const rerun: (id: string, options: object) => Promise<unknown> = pawl.runs.rerun;
    await expect(rerun(runId, { form: "step-1" })).rejects.toThrow(/did you mean "from"/);
    await expect(rerun(runId, { state: {} })).rejects.toThrow(/is not a machine.*pass input/);
    await expect(rerun(runId, { input: { by: 1n } })).rejects.toMatchObject({ code: "NotSerializable" });
    await expect(rerun(runId, { version: 0 })).rejects.toMatchObject({ code: "InvalidOption" });
    expect(await sql("select run_id from extras where rerun_of = $1", [runId])).toEqual([]);
  });
});
