import { setImmediate as turn } from "node:timers/promises";
import { workflow, type WorkflowContext } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, recordedBy, suspended } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

/** Sends a signal as another process would: nobody here is told, it is found by looking. */
const signalElsewhere = (runId: string, name: string, payload: object): Promise<unknown> =>
  store.signal([{ runId, name, payload: JSON.stringify(payload), dedupKey: null }], { patient: true });

type Step = WorkflowContext["step"];

/** Waits in `microtasks` promises before it gives the value on. */
async function chained<T>(promise: Promise<T>, microtasks: number): Promise<T> {
  const value = await promise;
  for (let n = 0; n < microtasks; n++) await Promise.resolve();
  return value;
}

describe("steps at the same time", () => {
  it("Promise.all runs steps concurrently and records each by itself", async () => {
    const all = gate();
    const concurrent = workflow({
      name: "concurrent",
      run: async ({ step }) =>
        Promise.all(
          [0, 1, 2].map((index) => step.run(`part-${index}`, async () => (await all.pass(), index * 10))),
        ),
    });
    await serve([concurrent]);
    const { runId } = await pawl.start(concurrent);
    await until("all three run", () => all.entered() === 3);
    all.open();
    expect(await pawl.result(runId)).toEqual([0, 10, 20]);
    expect((await recordedBy(database, runId)).toSorted()).toEqual(["part-0", "part-1", "part-2"]);
  });

  it("one step is recorded while another still runs", async () => {
    const slow = gate();
    const uneven = workflow({
      name: "uneven",
      run: async ({ step }) =>
        Promise.all([
          step.run("slow", async () => (await slow.pass(), "slow")),
          step.run("fast-1", () => "fast").then(() => step.run("fast-2", () => "faster")),
        ]),
    });
    await serve([uneven]);
    const { runId } = await pawl.start(uneven);
    await until("the fast ones are recorded", async () => (await recordedBy(database, runId)).length === 2);
    expect(await recordedBy(database, runId)).toEqual(["fast-1", "fast-2"]);
    slow.open();
    expect(await pawl.result(runId)).toEqual(["slow", "faster"]);
  });

  it("Promise.allSettled gives successes and failures, the same on replay", async () => {
    const seen: unknown[] = [];
    const settled = workflow({
      name: "settled",
      run: async ({ step }) => {
        const outcomes = await Promise.allSettled([
          step.run("good", () => 1),
          step.run("bad", () => Promise.reject(new Error("bad")), { retry: { attempts: 1 } }),
        ]);
        seen.push(
          outcomes.map((one) => (one.status === "fulfilled" ? one.value : (one.reason as Error).message)),
        );
        await step.waitForEvent("again");
      },
    });
    await serve([settled]);
    const { runId } = await pawl.start(settled);
    await suspended(database, runId);
    await pawl.signal(runId, "again", {});
    await pawl.result(runId);
    expect(seen).toEqual(Array(2).fill([1, 'step "bad" failed: bad']));
  });

  it("a run suspends only when every outstanding step is a wait", async () => {
    const busy = gate();
    const half = workflow({
      name: "half-waiting",
      run: async ({ step }) => {
        const work = step.run("busy", async () => busy.pass());
        await Promise.all([work, step.waitForEvent("event"), step.sleep("nap", 5)]);
      },
    });
    await serve([half]);
    const { runId } = await pawl.start(half);
    // The timer beside the running step is over while that runs: the run did not leave its worker.
    await until("the sleep is recorded", async () => (await recordedBy(database, runId)).includes("nap"));
    const [row] = await sql<{ status: string }>("select status from runs where id = $1", [runId]);
    expect(row).toEqual({ status: "executing" });
    busy.open();
    await suspended(database, runId);
    await pawl.signal(runId, "event", {});
    await pawl.result(runId);
  });

  it("more parallel steps than a claim brings along are recorded and replayed", async () => {
    let calls = 0;
    const many = workflow({
      name: "many",
      run: async ({ step }) => {
        const all = Array.from({ length: 1_100 }, (_, index) =>
          step.run(`n-${index}`, () => (calls++, index)),
        );
        const sum = (await Promise.all(all)).reduce((total, n) => total + n, 0);
        await step.waitForEvent("again");
        return sum;
      },
    });
    await serve([many]);
    const { runId } = await pawl.start(many);
    await suspended(database, runId);
    await pawl.signal(runId, "again", {});
    expect(await pawl.result(runId)).toBe(604_450);
    expect(calls).toBe(1_100);
  });
});

describe("a race", () => {
  /** Gates by which a test decides in which order the steps of one race complete. */
  const gates = { a: gate(), b: gate(), c: gate() };

  it.each<[string, (step: Step) => Promise<unknown>, ("a" | "b" | "c")[]]>([
    [
      "steps that are recorded against the order of their calls",
      (step) => Promise.race(["a", "b", "c"].map((name) => held(step, name))),
      ["c", "b", "a"],
    ],
    [
      "chains of different length",
      (step) => Promise.race([chained(held(step, "a"), 50), chained(held(step, "b"), 0), held(step, "c")]),
      ["a", "b", "c"],
    ],
    [
      "a chain of two steps against one",
      (step) => Promise.race([held(step, "a").then(() => held(step, "b")), chained(held(step, "c"), 9)]),
      ["a", "b", "c"],
    ],
    [
      "one step against a chain of two",
      (step) => Promise.race([held(step, "c"), held(step, "a").then(() => held(step, "b"))]),
      ["a", "b", "c"],
    ],
    [
      "Promise.any with a failure first",
      (step) =>
        Promise.any([
          held(step, "a").then(() => Promise.reject(new Error())),
          held(step, "b"),
          held(step, "c"),
        ]),
      ["a", "c", "b"],
    ],
  ])("of %s has the same winner on every replay", async (what, body, order) => {
    for (const name of ["a", "b", "c"] as const) gates[name] = gate();
    const winners: unknown[] = [];
    const race = workflow({
      name: what.replaceAll(/\W/g, "-").toLowerCase().slice(0, 48),
      run: async ({ step }) => {
        const winner = await body(step);
        winners.push(winner);
        await step.waitForEvent("again");
        await step.waitForEvent("and-again");
      },
    });
    await serve([race]);
    const { runId } = await pawl.start(race);
    for (const [index, name] of order.entries()) {
      await until(`${name} runs`, gates[name].entered);
      gates[name].open();
      await until(`${name} is recorded`, async () => {
        const recorded = await recordedBy(database, runId);
        return recorded.length > index || (index > 0 && winners.length > 0);
      });
      // The body has had what follows from it before the next one ends.
      for (let turns = 0; turns < 20; turns++) await turn();
    }
    await suspended(database, runId);
    await pawl.signal(runId, "again", {});
    await until("it was replayed", () => winners.length === 2);
    await suspended(database, runId);
    await pawl.signal(runId, "and-again", {});
    await pawl.result(runId);
    expect(winners).toHaveLength(3);
    expect(new Set(winners).size).toBe(1);
  });

  const held = (step: Step, name: string): Promise<string> =>
    step.run(name, async () => (await gates[name as "a"].pass(), name));

  it("of steps that end in the same instant has the same winner on every replay", async () => {
    const winners: number[][] = [];
    const instant = workflow({
      name: "instant",
      run: async ({ step }) => {
        const order: number[] = [];
        await Promise.all(
          Array.from({ length: 20 }, async (_, index) => {
            await chained(
              step.run(`n-${index}`, async () => chained(Promise.resolve(), (index * 7) % 5)),
              index % 3,
            );
            order.push(index);
          }),
        );
        winners.push(order);
        await step.waitForEvent("again");
      },
    });
    await serve([instant]);
    const { runId } = await pawl.start(instant);
    await suspended(database, runId);
    await pawl.signal(runId, "again", {});
    await pawl.result(runId);
    expect(winners).toHaveLength(2);
    expect(winners[1]).toEqual(winners[0]);
  });

  it("of a step and a sleep: whichever was recorded first wins, on replay too", async () => {
    for (const first of ["step", "sleep"] as const) {
      const slow = gate();
      const winners: string[] = [];
      const raced = workflow({
        name: `raced-by-${first}`,
        run: async ({ step }) => {
          const sleep = step.sleep("nap", first === "step" ? "1h" : 5).then(() => "sleep");
          const work = step.run("work", async () => (await slow.pass(), "step"));
          winners.push(await Promise.race([sleep, work]));
          if (winners.length === 1) slow.open();
          await work;
          await step.waitForEvent("again");
        },
      });
      await serve([raced]);
      const { runId } = await pawl.start(raced);
      if (first === "step") {
        await until("it runs", slow.entered);
        slow.open();
      }
      await suspended(database, runId);
      await pawl.signal(runId, "again", {});
      await pawl.result(runId);
      expect(winners).toEqual([first, first]);
    }
  });

  const cancellable = (name: string, running: ReturnType<typeof gate>, signals: AbortSignal[]) =>
    workflow({
      name,
      run: async ({ step }) => {
        const work = step.run("long", async ({ signal }) => {
          signals.push(signal);
          await running.pass();
          return "done" as const;
        });
        const event = step.waitForEvent("cancel", { match: { really: true } });
        return Promise.race([work, event]);
      },
    });

  it.each(["this process", "elsewhere"] as const)(
    "of a long step and an event is won by the event while the step runs: a signal from %s",
    async (from) => {
      const running = gate();
      const signals: AbortSignal[] = [];
      const definition = cancellable(`cancellable-${from.replace(" ", "-")}`, running, signals);
      await serve([definition]);
      const { runId } = await pawl.start(definition);
      await until(
        "it runs and waits",
        async () => running.entered() && (await journalOf(database, runId)).length === 1,
      );
      const send =
        from === "elsewhere" ? signalElsewhere : (...sent: [string, string, object]) => pawl.signal(...sent);
      await send(runId, "cancel", { really: false });
      await send(runId, "cancel", { really: true, by: from });
      expect(await pawl.result(runId)).toEqual({ really: true, by: from });
      // The loser is told, and what it does from now on is not recorded.
      expect(signals[0]!.aborted).toBe(true);
      running.open();
      for (let turns = 0; turns < 50; turns++) await turn();
      expect(await recordedBy(database, runId)).toEqual(["cancel"]);
    },
  );

  it("an event that the engine hears of by another question still ends its own wait, while a step runs", async () => {
    const running = gate();
    const asking = gate();
    const two = workflow({
      name: "two-waits",
      run: async ({ step }) => {
        const long = step.run("long", async () => (await running.pass(), "long"));
        const event = step.waitForEvent("event").then(() => "event");
        await asking.pass();
        const other = step.waitForEvent("other").then(() => "other");
        return Promise.race([long, event, other]);
      },
    });
    await serve([two]);
    const { runId } = await pawl.start(two);
    await until("it waits", async () => asking.entered() && (await journalOf(database, runId)).length === 1);
    // Nobody in this process is told: the wait for "other" is the first that finds the inbox grown.
    await signalElsewhere(runId, "event", {});
    asking.open();
    expect(await pawl.result(runId)).toBe("event");
    running.open();
  });
});
