import { InvalidOption, job, machine, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const passBy = job({ name: "pass-by", queue: "open", run: () => "passed" });
const letOthersPass = async (): Promise<void> => {
  expect(await pawl.result((await pawl.start(passBy, undefined)).runId)).toBe("passed");
};

describe("a paused queue", () => {
  it("keeps its runs waiting in two workers; other queues go on", async () => {
    const order: number[] = [];
    const counting = job({ name: "counting", queue: "slow", run: (_ctx, n: number) => void order.push(n) });
    const queues = { slow: 1, open: 1 };
    await serve([counting, passBy], { queues });
    await pawl.queues.pause("slow", { reason: "maintenance", by: "alice" });
    await serve([counting, passBy], { queues });
    const started = await pawl.startMany(
      counting,
      Array.from({ length: 5 }, (_, n) => ({ input: n })),
    );
    const alone = await pawl.start(counting, 5);
    await letOthersPass();
    await letOthersPass();
    expect(order).toEqual([]);
    const run = await pawl.runs.get(alone.runId);
    expect(run).toMatchObject({ phase: "runnable", paused: { scope: "queue", by: "alice" } });
    expect(await pawl.why(alone.runId)).toMatchObject({ reason: "paused", scope: "queue" });
    expect(await pawl.queues.paused()).toEqual([
      { name: "slow", by: "alice", reason: "maintenance", since: run.paused!.since },
    ]);
    expect(await pawl.queues.resume("slow")).toEqual({ changed: true });
    await Promise.all([...started, alone].map(({ runId }) => pawl.result(runId)));
    expect(order.toSorted()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await pawl.queues.paused()).toEqual([]);
  });

  it("lets running steps finish, and begins no other step of a machine or a workflow", async () => {
    const held = gate();
    const begun: string[] = [];
    const first = async (): Promise<void> => {
      begun.push("first");
      await held.pass();
    };
    const second = (): void => void begun.push("second");
    const stepping = machine({
      name: "stepping",
      queue: "busy",
      steps: {
        start: async (ctx) => {
          await first();
          return ctx.next("end", {});
        },
        end: (ctx) => {
          second();
          return ctx.done();
        },
      },
    });
    const writing = workflow({
      name: "writing",
      queue: "busy",
      run: async ({ step }) => {
        await step.run("first", first);
        await step.run("second", second);
      },
    });
    await serve([stepping, writing, passBy], { queues: { busy: 2, open: 1 } });
    const ids = [
      (await pawl.start(stepping, {})).runId,
      (await pawl.start(writing, undefined)).runId,
    ] as const;
    await until("both run", () => held.entered() === 2);
    await pawl.queues.pause("busy");
    held.open();
    await until("both are parked", async () => {
      const runs = await Promise.all(ids.map((id) => pawl.runs.get(id)));
      return runs.every(({ phase }) => phase === "runnable");
    });
    await letOthersPass();
    expect(begun).toEqual(["first", "first"]);
    await pawl.queues.resume("busy");
    await Promise.all(ids.map((id) => pawl.result(id)));
    expect(begun).toEqual(["first", "first", "second", "second"]);
  });

  it("gives no messages to receivers until it is resumed, and loses none", async () => {
    await pawl.queues.pause("mail");
    await pawl.queues.send("mail", { n: 1 });
    expect(await pawl.queues.receive("mail")).toEqual([]);
    const receiving = pawl.queues.receive("mail", { wait: "20s" });
    await pawl.queues.resume("mail");
    expect(await receiving).toMatchObject([{ body: { n: 1 } }]);
  });

  it("may be paused before it exists; pausing twice and resuming twice change nothing", async () => {
    expect(await pawl.queues.pause("later")).toEqual({ changed: true });
    expect(await pawl.queues.pause("later")).toEqual({ changed: false });
    expect(await pawl.queues.resume("later")).toEqual({ changed: true });
    expect(await pawl.queues.resume("later")).toEqual({ changed: false });
    await expect(pawl.queues.pause("no spaces")).rejects.toThrow(InvalidOption);
  });
});

describe("a paused definition", () => {
  it("waits in every version, or in one; the others go on", async () => {
    const done: number[] = [];
    const one = job({ name: "report", version: 1, run: () => void done.push(1) });
    const two = job({ name: "report", version: 2, run: () => void done.push(2) });
    await serve([one, two, passBy], { queues: { default: 5, open: 1 } });
    expect(await pawl.definitions.pause(one, { version: 1, by: "alice" })).toEqual({ changed: true });
    const first = await pawl.start(one, undefined);
    await pawl.result((await pawl.start(two, undefined)).runId);
    await letOthersPass();
    expect(done).toEqual([2]);
    expect((await pawl.runs.get(first.runId)).paused).toMatchObject({ scope: "definition", by: "alice" });

    await pawl.definitions.pause("report", { by: "bob" });
    const second = await pawl.start(two, undefined);
    await letOthersPass();
    expect(done).toEqual([2]);
    expect(await pawl.definitions.paused()).toMatchObject([
      { name: "report", version: 1, by: "alice" },
      { name: "report", version: null, by: "bob" },
    ]);
    expect(await pawl.definitions.resume("report", { version: 1 })).toEqual({ changed: true, still: true });
    await letOthersPass();
    expect(done).toEqual([2]);
    expect(await pawl.definitions.resume("report")).toEqual({ changed: true, still: false });
    await Promise.all([first, second].map(({ runId }) => pawl.result(runId)));
    expect(done.toSorted()).toEqual([1, 2, 2]);
  });

  it("is not begun by a signal, nor by the end of the run before it in its key", async () => {
    const held = gate();
    const begun: string[] = [];
    const keyed = job({
      name: "keyed",
      run: async (_ctx, label: string) => {
        begun.push(label);
        await held.pass();
      },
    });
    const waiting = workflow({
      name: "waiting",
      run: async ({ step }) => {
        await step.waitForEvent("go");
        await step.run("went", () => void begun.push("went"));
      },
    });
    await serve([keyed, waiting, passBy], { queues: { default: 5, open: 1 } });
    const woken = await pawl.start(waiting, undefined);
    await until("it waits", async () => (await pawl.runs.get(woken.runId)).phase === "awaiting_signal");
    const line = [
      await pawl.start(keyed, "a", { partitionKey: "k" }),
      await pawl.start(keyed, "b", { partitionKey: "k" }),
    ];
    await until("the first runs", () => held.entered() === 1);
    await pawl.definitions.pause(keyed);
    await pawl.definitions.pause(waiting);
    await pawl.signal(woken.runId, "go", {});
    held.open();
    await pawl.result(line[0]!.runId);
    await letOthersPass();
    expect(begun).toEqual(["a"]);
    await pawl.definitions.resume(keyed);
    await pawl.definitions.resume(waiting);
    await Promise.all([line[1]!.runId, woken.runId].map((id) => pawl.result(id)));
    expect(begun.toSorted()).toEqual(["a", "b", "went"]);
  });
});
