import {
  child,
  type EventMap,
  type EventName,
  job,
  machine,
  signal,
  type,
  workflow,
  type Worker,
} from "pawl";
import { describe, expect, it, vi } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent, testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

/** Everything that a worker tells, under the names of its events. */
function listen(worker: Worker, ...names: EventName[]): { name: EventName; event: EventMap[EventName] }[] {
  const heard: { name: EventName; event: EventMap[EventName] }[] = [];
  for (const name of names) worker.on(name, (event: EventMap[EventName]) => void heard.push({ name, event }));
  return heard;
}

const lifetime = [
  "run.started",
  "run.claimed",
  "step.started",
  "step.completed",
  "step.failed",
  "step.retried",
  "run.completed",
  "run.released",
] as const;

describe("events", () => {
  it("tell the life of a job in order: start, claim, retry, end", async () => {
    const early = new Error("not yet");
    const flaky = job({
      name: "flaky",
      backoff: () => 1,
      run: (ctx) => {
        if (ctx.attempt === 0) throw early;
        return "done";
      },
    });
    const worker = await serve([flaky]);
    const heard = listen(worker, ...lifetime);
    const { runId } = await pawl.start(flaky, null);
    await pawl.result(runId);
    await until(
      "the claim has ended",
      () => heard.filter(({ name }) => name === "run.released").length === 2,
    );
    const of = { runId, name: "flaky", version: 1 };
    const step = { ...of, step: "run", kind: "run" };
    const some = expect.any(Number) as number;
    // The start is told when it is committed, which may be after its worker has begun.
    const order = heard.filter(({ name }) => name !== "run.started");
    expect(heard).toContainEqual({
      name: "run.started",
      event: { runId, name: "flaky", version: 1, parentId: null },
    });
    expect(order).toEqual([
      { name: "run.claimed", event: { ...of, queue: "default", attempt: 0 } },
      { name: "step.started", event: { ...step, attempt: 0 } },
      { name: "step.retried", event: { ...step, attempt: 0, durationMs: some, delayMs: 1, error: early } },
      { name: "run.released", event: { ...of, queue: "default" } },
      { name: "run.claimed", event: { ...of, queue: "default", attempt: 1 } },
      { name: "step.started", event: { ...step, attempt: 1 } },
      { name: "step.completed", event: { ...step, attempt: 1, durationMs: some } },
      {
        name: "run.completed",
        event: { runId, name: "flaky", status: "completed", code: null, durationMs: some },
      },
      { name: "run.released", event: { ...of, queue: "default" } },
    ]);
    await worker.stop();
  });

  it("tell every step of a machine, its signals, its children and its failure by its code", async () => {
    const leaf = job({ name: "leaf", run: () => null });
    const parent = machine({
      name: "parent",
      state: type<{ n: number }>(),
      signals: { go: signal<{ ok: boolean }>() },
      steps: {
        start: (ctx) => ctx.awaitSignal("go", "fan", ctx.state),
        fan: (ctx) => ctx.spawn("end", [child(leaf, null), child(leaf, null)], ctx.state),
        end: () => {
          throw Object.assign(new Error("no"), { code: "E_NO" });
        },
      },
    });
    const worker = await serve([leaf, parent]);
    const heard = listen(
      worker,
      "run.started",
      "step.completed",
      "step.failed",
      "signal.delivered",
      "run.completed",
    );
    const { runId } = await pawl.start(parent, { n: 1 });
    await pawl.signal(runId, "go", { ok: true });
    await expect(pawl.result(runId)).rejects.toThrow();
    const ofParent = heard.flatMap(({ name, event }) => {
      const { step, ...rest } = event as { runId: string; step?: string; code?: string; event?: string };
      return rest.runId === runId ? [[name, step ?? rest.event ?? rest.code ?? null]] : [];
    });
    expect(ofParent.toSorted()).toEqual(
      [
        ["run.started", null],
        ["step.completed", "start"],
        ["signal.delivered", "go"],
        ["step.completed", "fan"],
        ["step.failed", "end"],
        ["run.completed", "E_NO"],
      ].toSorted(),
    );
    const children = heard.filter(({ event }) => "parentId" in event && event.parentId === runId);
    expect(children.map(({ event }) => (event as EventMap["run.started"]).name)).toEqual(["leaf", "leaf"]);
    await worker.stop();
  });

  it("tell the steps of a workflow once each, whether they run, sleep, wait or invoke", async () => {
    const leaf = job({ name: "leaf", run: () => "leaf" });
    const flow = workflow({
      name: "flow",
      run: async (ctx) => {
        await ctx.step.run("work", () => 1);
        await ctx.step.sleep("rest", 5);
        await ctx.step.waitForEvent("go");
        await ctx.step.invoke("call", leaf, null);
        await ctx.step
          .run("broken", () => Promise.reject(new Error("no")), {
            retry: { attempts: 2, backoff: { kind: "fixed", base: 1 } },
          })
          .catch(() => null);
        return 1;
      },
    });
    const worker = await serve([leaf, flow]);
    const heard = listen(worker, "step.completed", "step.failed", "step.retried");
    const { runId } = await pawl.start(flow, null);
    await pawl.signal(runId, "go");
    await pawl.result(runId);
    const steps = heard.flatMap(({ name, event }) => {
      const { step, kind } = event as EventMap["step.completed"];
      return (event as { runId: string }).runId === runId ? [`${name} ${step} ${kind}`] : [];
    });
    expect(steps).toEqual([
      "step.completed work run",
      "step.completed rest sleep",
      "step.completed go wait",
      "step.completed call invoke",
      "step.retried broken run",
      "step.failed broken run",
    ]);
    await worker.stop();
  });

  it("tell of cancelled runs, with the definition of each", async () => {
    const idle = job({ name: "idle", run: () => null });
    const worker = await serve([idle]);
    const heard = listen(worker, "run.completed");
    const { runId } = await pawl.start(idle, null, { delay: "1h" });
    await pawl.runs.cancel(runId);
    expect(heard).toEqual([
      {
        name: "run.completed",
        event: { runId, name: "idle", status: "cancelled", code: null, durationMs: null },
      },
    ]);
    await worker.stop();
  });

  it("tell of claims, empty looks and flushes, and of runs put off by their limit", async () => {
    const limited = job({ name: "limited", run: () => null });
    const worker = await serve([limited], { limits: { slow: { allowed: 1, period: "1h", burst: 1 } } });
    const heard = listen(worker, "claim", "flush", "run.throttled");
    const [first] = await pawl.startMany(
      limited,
      [1, 2, 3].map(() => ({ input: null, rateLimit: "slow" })),
    );
    await pawl.result(first!.runId);
    await until("two are put off", () =>
      heard.some(({ name, event }) => name === "run.throttled" && (event as { runs: number }).runs === 2),
    );
    await until("a look finds nothing", () =>
      heard.some(({ name, event }) => name === "claim" && (event as { runs: number }).runs === 0),
    );
    expect(heard).toContainEqual({
      name: "flush",
      event: { what: "commit", size: 1, durationMs: expect.any(Number) as number },
    });
    await worker.stop();
  });

  it("cannot be broken by a listener that throws or rejects: it is logged, and the others are told", async () => {
    const errors: object[] = [];
    const logger = { ...silent, error: (details: object) => void errors.push(details) };
    const steady = job({ name: "steady", run: () => "fine" });
    const worker = await serve([steady], { logger: logger as never });
    const told = vi.fn();
    worker.on("run.completed", () => {
      throw new Error("a bad listener");
    });
    worker.on("run.completed", () => Promise.reject(new Error("a late one")));
    worker.on("run.completed", told);
    const { runId } = await pawl.start(steady, null);
    expect(await pawl.result(runId)).toBe("fine");
    await until("both are logged", () => errors.length === 2);
    expect(errors).toMatchObject([{ event: "run.completed" }, { event: "run.completed" }]);
    expect(told).toHaveBeenCalledTimes(1);
    await worker.stop();
  });

  it("are not told any more to who has taken the listener back, and once to who asked for one", async () => {
    const steady = job({ name: "steady", run: () => "fine" });
    const worker = await serve([steady]);
    const [once, back, off, all] = [vi.fn(), vi.fn(), vi.fn(), vi.fn()];
    worker.once("run.completed", once);
    worker.on("run.completed", back)();
    worker.on("run.completed", off);
    worker.off("run.completed", off);
    worker.on("run.completed", all);
    for (let count = 0; count < 2; count++) {
      const { runId } = await pawl.start(steady, null);
      await pawl.result(runId);
    }
    expect([once, back, off, all].map((listener) => listener.mock.calls.length)).toEqual([1, 0, 0, 2]);
    await worker.stop();
  });

  it("refuse a name that is none, and say which there are", async () => {
    const steady = job({ name: "steady", run: () => "fine" });
    const worker = await serve([steady]);
    expect(() => worker.on("step.complete" as never, () => {})).toThrow(/did you mean "step.completed"/);
    expect(() => worker.on("run.started", null as never)).toThrow("the listener");
    await worker.stop();
  });
});
