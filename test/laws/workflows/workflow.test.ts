import { job, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { journalOf, recordedBy, suspended } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

describe("the body of a workflow", () => {
  it("is called once when nothing suspends it: after each step it goes on in the same invocation", async () => {
    let calls = 0;
    const straight = workflow({
      name: "straight",
      run: async ({ step }, input: { by: number }) => {
        calls++;
        const one = await step.run("one", () => 1);
        const two = await step.run("two", async () => one + input.by);
        return step.run("three", () => two + input.by);
      },
    });
    await serve([straight]);
    const { runId } = await pawl.start(straight, { by: 10 });
    expect(await pawl.result(runId)).toBe(21);
    expect(calls).toBe(1);
    expect(await journalOf(database, runId)).toMatchObject([
      { name: "one", kind: "run", seq: 1, output: 1, error: null, attempt: 0 },
      { name: "two", kind: "run", seq: 2, output: 11, error: null, attempt: 0 },
      { name: "three", kind: "run", seq: 3, output: 21, error: null, attempt: 0 },
    ]);
  });

  it("commits the outcome of a step before the next step begins", async () => {
    const seen: unknown[] = [];
    const careful = workflow({
      name: "careful",
      run: async ({ step, runId }) => {
        for (const index of [0, 1, 2]) {
          await step.run(`step-${index}`, async () => {
            seen.push(await recordedBy(database, runId));
          });
        }
        seen.push(await recordedBy(database, runId));
      },
    });
    await serve([careful]);
    await pawl.result((await pawl.start(careful)).runId);
    expect(seen).toEqual([[], ["step-0"], ["step-0", "step-1"], ["step-0", "step-1", "step-2"]]);
  });

  it("runs from the top on every resume; what is recorded is given back without calling its function", async () => {
    const called: string[] = [];
    const resuming = workflow({
      name: "resuming",
      run: async ({ step }) => {
        called.push("top");
        const one = await step.run("one", () => (called.push("one"), { n: called.length }));
        const event = await step.waitForEvent("first");
        const two = await step.run("two", () => (called.push("two"), called.length));
        await step.waitForEvent("second");
        return { one, event, two };
      },
    });
    await serve([resuming]);
    const { runId } = await pawl.start(resuming);
    await suspended(database, runId);
    await pawl.signal(runId, "first", { a: 1 });
    await until("the second wait is known", async () => (await journalOf(database, runId)).length === 4);
    await suspended(database, runId);
    await pawl.signal(runId, "second", {});
    expect(await pawl.result(runId)).toEqual({ one: { n: 2 }, event: { a: 1 }, two: 4 });
    expect(called).toEqual(["top", "one", "top", "two", "top"]);
  });

  it("an error that it throws outside a step fails the run, its steps stay recorded", async () => {
    const throwing = workflow({
      name: "throwing",
      run: async ({ step }) => {
        await step.run("kept", () => "kept");
        throw new TypeError("no such luck");
      },
    });
    await serve([throwing]);
    const { runId } = await pawl.start(throwing);
    await expect(pawl.result(runId)).rejects.toThrow("no such luck");
    const { status, error } = await pawl.runs.get(runId);
    expect({ status, error }).toEqual({
      status: "failed",
      error: {
        name: "TypeError",
        message: "no such luck",
        stack: expect.stringContaining("workflow.test.ts") as string,
      },
    });
    expect(await recordedBy(database, runId)).toEqual(["kept"]);
  });

  it("may throw before its first await, and anything at all", async () => {
    const sudden = workflow({
      name: "sudden",
      run: (): Promise<null> => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw "just text";
      },
    });
    await serve([sudden]);
    await expect(pawl.result((await pawl.start(sudden)).runId)).rejects.toMatchObject({
      error: { message: "just text" },
    });
  });

  it("may end without any step, and steps may be taken out of ctx", async () => {
    const plain = workflow({ name: "plain", run: async () => "plain" });
    const taken = workflow({
      name: "taken",
      run: async ({ step: { run, sleep } }) => {
        await sleep("nap", 1);
        return run("one", () => "taken");
      },
    });
    await serve([plain, taken]);
    expect(await pawl.result((await pawl.start(plain)).runId)).toBe("plain");
    expect(await pawl.result((await pawl.start(taken)).runId)).toBe("taken");
  });

  it("knows who it is", async () => {
    const known = workflow({
      name: "known",
      version: 3,
      run: async ({ runId, name, version, signal }) => ({ runId, name, version, aborted: signal.aborted }),
    });
    await serve([known]);
    const { runId } = await pawl.start(known);
    expect(await pawl.result(runId)).toEqual({ runId, name: "known", version: 3, aborted: false });
    expect(await pawl.runs.get(runId)).toMatchObject({ kind: "workflow" });
  });
});

describe("values", () => {
  const clumsy = (): object => ({
    long: 1,
    b: new Date(0),
    a: undefined,
    c: -0,
    nested: { zz: 1, z: [new Date(1)] },
  });
  const expected =
    '{"b":"1970-01-01T00:00:00.000Z","c":0,"long":1,"nested":{"z":["1970-01-01T00:00:00.001Z"],"zz":1}}';

  it("are on the first run already what a replay gives: dates as text, the order of keys, no undefined", async () => {
    const texts: string[] = [];
    const replayed = workflow({
      name: "replayed-values",
      run: async ({ step }, input: object) => {
        texts.push(JSON.stringify([input, await step.run("value", clumsy)]));
        await step.waitForEvent("again");
        return clumsy();
      },
    });
    await serve([replayed]);
    const { runId } = await pawl.start(replayed, clumsy());
    await suspended(database, runId);
    await pawl.signal(runId, "again", {});
    expect(JSON.stringify(await pawl.result(runId))).toBe(expected);
    expect(texts).toEqual(Array(2).fill(`[${expected},${expected}]`));
  });

  it("undefined is recorded as null, and null is a result like any other", async () => {
    const empty = workflow({
      name: "empty-values",
      run: async ({ step }) => {
        const nothing = await step.run("nothing", () => {});
        const none = await step.run("none", async () => null);
        await step.sleep("nap", 1);
        return [nothing, none];
      },
    });
    await serve([empty]);
    expect(await pawl.result((await pawl.start(empty)).runId)).toEqual([null, null]);
  });

  it.each<[string, () => unknown, RegExp]>([
    ["a Map", () => ({ in: new Map() }), /the result of step "bad"\.in/],
    ["a function", () => [() => 1], /the result of step "bad"\[0\]/],
    ["a BigInt", () => 1n, /the result of step "bad"/],
    ["NUL", () => "\0", /the result of step "bad"/],
    ["more than 1 MiB", () => "x".repeat(1_100_000), /the result of step "bad"/],
  ])("a step that returns %s fails at once, with the path of the value", async (_what, make, message) => {
    let calls = 0;
    const bad = workflow({
      name: "bad-values",
      run: async ({ step }) => step.run("bad", () => (calls++, make() as null)),
    });
    const worker = await serve([bad]);
    const { runId } = await pawl.start(bad);
    await expect(pawl.result(runId)).rejects.toThrow(message);
    await worker.stop();
    expect(calls).toBe(1);
  });

  it("a result of the body that JSON cannot carry fails the run", async () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    const unstorable = workflow({ name: "unstorable", run: async () => circular as { self: null } });
    await serve([unstorable]);
    await expect(pawl.result((await pawl.start(unstorable)).runId)).rejects.toMatchObject({
      error: { code: "NotSerializable" },
    });
  });

  it("input and output pass through their schemas; the input is parsed again on every resume", async () => {
    let parses = 0;
    const checked = workflow({
      name: "checked",
      input: z.object({ n: z.number().default(7) }).refine(() => ++parses > 0),
      output: z.object({ n: z.number(), by: z.string().default("schema") }),
      run: async ({ step }, { n }) => {
        await step.sleep("nap", 1);
        return { n: n + 1 };
      },
    });
    await serve([checked]);
    const { runId } = await pawl.start(checked, {});
    const before = parses;
    expect(await pawl.result(runId)).toEqual({ n: 8, by: "schema" });
    expect(parses).toBeGreaterThanOrEqual(before + 1);
    expect((await pawl.runs.get(runId)).input).toEqual({ n: 7 });
    await expect(pawl.start(checked, { n: "7" } as never)).rejects.toMatchObject({ code: "InvalidInput" });
  });

  it("a stored input that the schema no longer accepts fails the run: InvalidInput; a bad output: InvalidOutcome", async () => {
    const strict = workflow({
      name: "strict",
      input: z.object({ n: z.number() }),
      output: z.object({ m: z.number() }),
      run: async () => ({ m: "text" as unknown as number }),
    });
    await serve([strict]);
    const byName = await pawl.start("strict", { n: "text" });
    await expect(pawl.result(byName.runId)).rejects.toMatchObject({ error: { code: "InvalidInput" } });
    const { runId } = await pawl.start(strict, { n: 1 });
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "InvalidOutcome" } });
  });
});

describe("versions", () => {
  it("two versions are served side by side; a run finishes on the version it started with", async () => {
    const make = (version: number) =>
      workflow({
        name: "versioned",
        version,
        run: async ({ step }) => {
          await step.waitForEvent("go");
          return step.run("which", () => version);
        },
      });
    const [one, two] = [make(1), make(2)];
    const old = await serve([one]);
    const first = await pawl.start(one);
    await suspended(database, first.runId);
    await old.stop();
    await serve([one, two]);
    const second = await pawl.start(two);
    await suspended(database, second.runId);
    for (const { runId } of [first, second]) await pawl.signal(runId, "go", {});
    expect([await pawl.result(first.runId), await pawl.result(second.runId)]).toEqual([1, 2]);
  });

  it("a step may be added where a suspended run has not been yet", async () => {
    let isChanged = false;
    const growing = workflow({
      name: "growing",
      run: async ({ step }) => {
        const one = await step.run("one", () => "one");
        await step.waitForEvent("go");
        if (!isChanged) return [one];
        return [one, await step.run("added", () => "added")];
      },
    });
    await serve([growing]);
    const { runId } = await pawl.start(growing);
    await suspended(database, runId);
    isChanged = true;
    await pawl.signal(runId, "go", {});
    expect(await pawl.result(runId)).toEqual(["one", "added"]);
  });
});

it("jobs and workflows share a worker, a queue and the table of runs", async () => {
  const simple = job({ name: "simple", run: () => "job" });
  const beside = workflow({ name: "beside", run: async ({ step }) => step.run("one", () => "workflow") });
  await serve([simple, beside]);
  const started = [await pawl.start(simple), await pawl.start(beside)];
  expect(await Promise.all(started.map(({ runId }) => pawl.result(runId)))).toEqual(["job", "workflow"]);
  const rows = await sql<{ kind: string }>("select kind from runs where id = any ($1) order by id", [
    started.map(({ runId }) => runId),
  ]);
  expect(rows.map(({ kind }) => kind)).toEqual(["job", "workflow"]);
});
