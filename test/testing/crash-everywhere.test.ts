import { child, job, machine, signal, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { aTest } from "./test.js";

describe("crashEverywhere", () => {
  it("finds nothing in a workflow whose effects are idempotent", async () => {
    const t = await aTest();
    const sent = new Map<string, string>();
    const welcome = workflow({
      name: "welcome",
      run: async ({ step, runId }, email: string) => {
        const user = await step.run("create", () => ({ email }));
        await step.sleep("settle-in", "1d");
        await step.run("mail", () => void sent.set(`${runId}-mail`, user.email));
        return `welcome, ${email}`;
      },
    });
    const report = await t.crashEverywhere(welcome, "ada@example.com", {
      effects: () => [...sent.values()],
      reset: () => sent.clear(),
    });
    expect(report.changed).toEqual([]);
    expect(report.text).toBe(
      `welcome@1: none of ${report.points} places at which a worker died made a difference`,
    );
    // create, the sleep, its suspension, mail and the result: each before and after.
    expect(report.points).toBe(10);
  });

  it("names the step that sends a mail twice", async () => {
    const t = await aTest();
    const mails: string[] = [];
    const welcome = workflow({
      name: "welcome",
      run: async ({ step }, email: string) => {
        await step.run("create", () => 1);
        await step.run("mail", () => void mails.push(email));
        await step.run("tell", () => 2);
      },
    });
    const report = await t.crashEverywhere(welcome, "ada", { effects: () => mails.splice(0) });
    expect(report.changed).toEqual([
      {
        definition: "welcome@1",
        after: "mail",
        commit: "step",
        side: "before",
        effects: { expected: ["ada"], found: ["ada", "ada"] },
      },
    ]);
    expect(report.text).toBe(
      `welcome@1: 1 of 8 places at which a worker died made a difference:
  after step "mail" of welcome@1, before it was committed: the step was executed again
    the effects were ["ada", "ada"], not ["ada"]`,
    );
  });

  it("prints the error of a run that fails only after a crash, with its stack", async () => {
    const t = await aTest();
    let calls = 0;
    const fragile = job({
      name: "fragile",
      maxAttempts: 2,
      run: () => {
        if (++calls > 1) throw new Error("called twice");
      },
    });
    const reset = (): void => void (calls = 0);
    const report = await t.crashEverywhere(fragile, null, { effects: () => null, reset });
    expect(report.changed).toMatchObject([{ side: "before", failure: { message: "called twice" } }]);
    expect(report.text).toMatch(
      /^ {4}Error: called twice\n {8}at .*crash-everywhere\.test\.[jt]s:\d+:\d+\)$/m,
    );
  });

  it("names every step after which code outside of steps has an effect, or gives another result", async () => {
    const t = await aTest();
    let calls = 0;
    const leaky = workflow({
      name: "leaky",
      run: async ({ step }) => {
        calls++;
        await step.run("first", () => 1);
        return calls;
      },
    });
    const report = await t.crashEverywhere(leaky, undefined, {
      effects: () => null,
      reset: () => (calls = 0),
    });
    expect(report.changed.map(({ after, commit, side }) => [after, commit, side])).toEqual([
      ["first", "step", "before"],
      ["first", "step", "after"],
      ["first", "result", "before"],
    ]);
    expect(report.changed[0]!.result).toEqual({
      expected: { status: "completed", output: 1, error: null },
      found: { status: "completed", output: 2, error: null },
    });
    expect(report.text).toContain("the run gave 2; without a crash it gave 1");
  });

  it("crashes machines, with the signals and children that they wait for", async () => {
    const t = await aTest();
    const effects: string[] = [];
    const ship = job({ name: "ship", run: (_ctx, item: string) => void effects.push(`ship ${item}`) });
    const order = machine({
      name: "order",
      state: type<{ items: string[] }>(),
      signals: { paid: signal<{ euros: number }>() },
      steps: {
        start: (ctx) => ctx.next("wait", ctx.state),
        wait: (ctx) => ctx.awaitSignal("paid", "send", ctx.state, { timeout: "1h" }),
        send: (ctx) =>
          ctx.spawn(
            "end",
            ctx.state.items.map((item) => child(ship, item)),
            ctx.state,
          ),
        end: (ctx) => {
          effects.push("end");
          return ctx.done(ctx.children.length);
        },
      },
    });
    await t.serve([ship, order]);
    const report = await t.crashEverywhere(
      order,
      { items: ["pawl"] },
      {
        effects: () => effects.splice(0).toSorted(),
        drive: async (runId) => {
          await t.drain();
          await t.pawl.signal(runId, "paid", { euros: 5 });
        },
      },
    );
    expect(report.changed.map(({ definition, after, side }) => [definition, after, side])).toEqual([
      ["ship@1", null, "before"],
      ["order@1", "end", "before"],
    ]);
    expect(report.text).toContain(
      "in ship@1, before the result was committed: the function was executed again",
    );
    expect(report.text).toContain(
      'after step "end" of order@1, before it was committed: the step was executed again',
    );
    // start, wait, send, the child, end: each before and after.
    expect(report.points).toBe(10);
  });

  it("finds nothing in what a transaction commits together with its step", async () => {
    const t = await aTest();
    const pay = workflow({
      name: "pay",
      run: async ({ step }, euros: number) => {
        await step.transaction("pay", (tx) =>
          tx.query("insert into paid values ($1)", [euros]).then(() => null),
        );
        const sum = await step.transaction("sum", async (tx) => {
          const { rows } = await tx.query("select sum(euros)::int as sum from paid");
          return (rows as { sum: number }[])[0]!.sum;
        });
        await step.transaction("forget", (tx) => tx.query("truncate paid").then(() => null));
        return sum;
      },
    });
    const make = job({
      name: "make",
      run: (ctx) => ctx.transaction((tx) => tx.query("create table paid (euros int)").then(() => null)),
    });
    await t.serve([make, pay]);
    await t.pawl.result((await t.pawl.start(make)).runId);
    const report = await t.crashEverywhere(pay, 5, { effects: () => null });
    expect(report.changed).toEqual([]);
    expect(report.points).toBe(8);
    const { runs } = await t.pawl.runs.list({ name: "pay" });
    expect(runs.map(({ output }) => output)).toEqual(runs.map(() => 5));
  });

  it("says that a job ends otherwise if it has no attempts left", async () => {
    const t = await aTest();
    const fragile = job({ name: "fragile", maxAttempts: 1, run: () => "done" });
    const report = await t.crashEverywhere(fragile, undefined, { effects: () => null });
    expect(report.changed).toHaveLength(1);
    expect(report.text).toMatch(
      /the run was failed \(the worker died during attempt 1.*without a crash it gave "done"/s,
    );
  });

  it("serves the definition only meanwhile, and leaves the test as it was", async () => {
    const t = await aTest();
    const work = job({ name: "work", run: () => 1 });
    await t.crashEverywhere(work, undefined, { effects: () => null });
    const { runId } = await t.pawl.start(work);
    await t.drain();
    expect(await t.pawl.why(runId)).toMatchObject({ reason: "unserved" });
  });

  it("refuses what it cannot compare, and runs that do not end", async () => {
    const t = await aTest();
    const mails: string[] = [];
    const work = job({ name: "work", run: () => void mails.push("mail") });
    const wait = workflow({ name: "wait", run: ({ step }) => step.waitForEvent("answer") });
    await expect(t.crashEverywhere(work, undefined, { effects: () => mails })).rejects.toThrow(
      /cannot compare the effects: two executions without a crash differ, \["mail"\] and then \["mail", "mail"\].*mails\.splice\(0\)/s,
    );
    await expect(t.crashEverywhere(wait, undefined, { effects: () => null })).rejects.toThrow(
      /needs a run that ends, but it does not: run \d+ is suspended in step "answer".*drive/,
    );
    await expect(t.crashEverywhere(work, undefined, { effects: [] as never })).rejects.toThrow(
      "effects of t.crashEverywhere must be a function, not []",
    );
    await expect(
      t.crashEverywhere(work, undefined, { effects: () => null, driver: () => null } as never),
    ).rejects.toThrow('did you mean "drive"');
  });
});
