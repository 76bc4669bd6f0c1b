import { workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, makeDue, recordedBy, suspended } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

/** What is in the inbox of a run, oldest first. */
const inboxOf = (runId: string): Promise<unknown[]> =>
  sql<{ name: string; payload: unknown }>(
    "select name, payload from signals where run_id = $1 and consumed_at is null order by seq",
    [runId],
  );

/** Starts a run that does nothing before the test has sent what it wants. */
const late = { delay: "1h" } as const;
const begin = (runId: string): Promise<unknown> =>
  sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);

describe("waitForEvent", () => {
  it("suspends the run; the payload of the event is its result", async () => {
    let calls = 0;
    const waiting = workflow({
      name: "waiting",
      run: async ({ step }) => {
        calls++;
        return step.waitForEvent("approved");
      },
    });
    await serve([waiting]);
    const { runId } = await pawl.start(waiting);
    await suspended(database, runId);
    expect(await pawl.runs.get(runId)).toMatchObject({ status: "running", phase: "awaiting_signal" });
    await pawl.signal(runId, "approved", { by: "me", at: new Date(0) });
    expect(await pawl.result(runId)).toEqual({ by: "me", at: "1970-01-01T00:00:00.000Z" });
    expect(calls).toBe(2);
  });

  it("finds an event that was sent before it waits, without suspending", async () => {
    let calls = 0;
    const early = workflow({
      name: "early",
      run: async ({ step }) => (calls++, step.waitForEvent("approved")),
    });
    await serve([early]);
    const { runId } = await pawl.start(early, null, late);
    await pawl.signal(runId, "approved", { n: 1 });
    await begin(runId);
    expect(await pawl.result(runId)).toEqual({ n: 1 });
    expect(calls).toBe(1);
  });

  it("finds an event that comes while a step runs", async () => {
    const running = gate();
    const during = workflow({
      name: "during",
      run: async ({ step }) => {
        await step.run("long", async () => running.pass());
        return step.waitForEvent("approved");
      },
    });
    await serve([during]);
    const { runId } = await pawl.start(during);
    await until("it runs", running.entered);
    await pawl.signal(runId, "approved", { n: 1 });
    running.open();
    expect(await pawl.result(runId)).toEqual({ n: 1 });
  });

  it("takes the first that matches, oldest first, and leaves the others in the inbox", async () => {
    const still = gate();
    const choosy = workflow({
      name: "choosy",
      run: async ({ step }) => {
        const first = await step.waitForEvent("a", { event: "order", match: { user: { id: 7 } } });
        const second = await step.waitForEvent("b", { event: "order" });
        await step.run("look", async () => still.pass());
        return [first, second];
      },
    });
    await serve([choosy]);
    const { runId } = await pawl.start(choosy, null, late);
    const sent = [1, 7, 7, 2].map((id, n) => ({ n, user: { id, name: "x" } }));
    for (const payload of sent) await pawl.signal(runId, "order", payload);
    await pawl.signal(runId, "other", {});
    await begin(runId);
    await until("both are taken", still.entered);
    expect(await inboxOf(runId)).toEqual([
      { name: "order", payload: sent[2] },
      { name: "order", payload: sent[3] },
      { name: "other", payload: {} },
    ]);
    still.open();
    expect(await pawl.result(runId)).toEqual([sent[1], sent[0]]);
  });

  it("is not woken by what does not match", async () => {
    let calls = 0;
    const asleep = workflow({
      name: "asleep",
      run: async ({ step }) => (calls++, step.waitForEvent("order", { match: { id: 7 } })),
    });
    await serve([asleep]);
    const { runId } = await pawl.start(asleep);
    await suspended(database, runId);
    await pawl.signal(runId, "order", { id: 6 });
    await pawl.signal(runId, "other", { id: 7 });
    await suspended(database, runId);
    expect(calls).toBe(1);
    await pawl.signal(runId, "order", { id: 7 });
    expect(await pawl.result(runId)).toEqual({ id: 7 });
    expect(calls).toBe(2);
  });

  it("two waits take signals in the order of their calls, also at the same time", async () => {
    const pair = workflow({
      name: "pair",
      run: async ({ step }) =>
        Promise.all([
          step.waitForEvent("z-first", { event: "go" }),
          step.waitForEvent("a-second", { event: "go" }),
        ]),
    });
    await serve([pair]);
    const early = await pawl.start(pair, null, late);
    for (const n of [1, 2]) await pawl.signal(early.runId, "go", { n });
    await begin(early.runId);
    expect(await pawl.result(early.runId)).toEqual([{ n: 1 }, { n: 2 }]);
    const waiting = await pawl.start(pair);
    await suspended(database, waiting.runId);
    for (const n of [1, 2]) await pawl.signal(waiting.runId, "go", { n });
    expect(await pawl.result(waiting.runId)).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it("two waits take signals in that order also while an open transaction holds the run", async () => {
    const ready = gate();
    const pair = workflow({
      name: "held-up",
      run: async ({ step }) => {
        await ready.pass();
        const waits = Array.from({ length: 10 }, (_, n) => step.waitForEvent(`wait-${n}`, { event: "go" }));
        return (await Promise.all(waits)).map((payload) => (payload as { n: number }).n);
      },
    });
    await serve([pair]);
    const { runId } = await pawl.start(pair, null, late);
    for (let n = 0; n < 10; n++) await pawl.signal(runId, "go", { n });
    await begin(runId);
    await until("it runs", ready.entered);
    const holder = await database.connect();
    await holder.query("begin");
    await holder.query("select from runs where id = $1 for no key update", [runId]);
    ready.open();
    const pid = (await holder.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
    await until("they wait for it", async () => {
      const waiting = "select from pg_stat_activity where $1 = any (pg_blocking_pids(pid))";
      return (await sql(waiting, [pid])).length > 0;
    });
    await until("they have given up waiting", async () => {
      const waiting = "select from pg_stat_activity where $1 = any (pg_blocking_pids(pid))";
      return (await sql(waiting, [pid])).length === 0;
    });
    await holder.query("commit");
    expect(await pawl.result(runId)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it("consumes the signal and records the step in one transaction: an event is taken exactly once", async () => {
    const taken = workflow({
      name: "taken-once",
      run: async ({ step }) => {
        const first = await step.waitForEvent("a", { event: "go" });
        const second = await step.waitForEvent("b", { event: "go", timeout: "1h" });
        return [first, second];
      },
    });
    await serve([taken]);
    const { runId } = await pawl.start(taken);
    await suspended(database, runId);
    await pawl.signal(runId, "go", { n: 1 });
    await until("the second wait is known", async () => (await journalOf(database, runId)).length === 2);
    await suspended(database, runId);
    expect(await inboxOf(runId)).toEqual([]);
    expect(await journalOf(database, runId)).toMatchObject([
      { name: "a", kind: "wait", output: { n: 1 }, completed: true },
      { name: "b", kind: "wait", seq: null, completed: false },
    ]);
    await makeDue(database, runId);
    expect(await pawl.result(runId)).toEqual([{ n: 1 }, null]);
  });

  it("gives null once the timeout has passed; that is recorded, and a later signal does not change it", async () => {
    const answers: unknown[] = [];
    const timed = workflow({
      name: "timed",
      run: async ({ step }) => {
        answers.push(await step.waitForEvent("go", { timeout: "1h" }));
        await step.waitForEvent("again");
      },
    });
    await serve([timed]);
    const { runId } = await pawl.start(timed);
    await suspended(database, runId);
    await makeDue(database, runId);
    await pawl.signal(runId, "unwanted", {});
    await until("it went on", () => answers.length === 1);
    await suspended(database, runId);
    await pawl.signal(runId, "go", { late: true });
    await pawl.signal(runId, "again", {});
    await pawl.result(runId);
    expect(answers).toEqual([null, null]);
  });

  it("a match that is there when the timeout is noticed wins over it", async () => {
    const close = workflow({
      name: "close",
      run: async ({ step }) => step.waitForEvent("go", { timeout: "1h" }),
    });
    await serve([close]);
    const { runId } = await pawl.start(close);
    await suspended(database, runId);
    await sql("update steps set due_at = clock_timestamp() where run_id = $1", [runId]);
    await pawl.signal(runId, "go", { in: "time" });
    expect(await pawl.result(runId)).toEqual({ in: "time" });
  });

  it("keeps the deadline of its first encounter over resumes", async () => {
    const deadlines: unknown[] = [];
    const resumed = workflow({
      name: "resumed",
      run: async ({ step, runId }) => {
        const timed = step.waitForEvent("never", { timeout: "1h" });
        await step.waitForEvent("again");
        await step.run("look", async () => {
          deadlines.push(
            ...(await sql("select due_at from steps where run_id = $1 and name = 'never'", [runId])),
          );
        });
        return timed;
      },
    });
    await serve([resumed]);
    const { runId } = await pawl.start(resumed);
    await suspended(database, runId);
    const before = await sql("select due_at from steps where run_id = $1 and name = 'never'", [runId]);
    await pawl.signal(runId, "again", {});
    await until("it looked", () => deadlines.length > 0);
    expect(deadlines).toEqual(before);
    await suspended(database, runId);
    const [row] = await sql("select eligible_at as due_at from runs where id = $1", [runId]);
    expect(row).toEqual(before[0]);
    await makeDue(database, runId);
    expect(await pawl.result(runId)).toBeNull();
  });

  it("a dedup key makes a redelivery a no-op, also after consumption", async () => {
    const counting = workflow({
      name: "counting",
      run: async ({ step }) => {
        const first = await step.waitForEvent("a", { event: "go" });
        const second = await step.waitForEvent("b", { event: "go" });
        return [first, second];
      },
    });
    await serve([counting]);
    const { runId } = await pawl.start(counting);
    await suspended(database, runId);
    await pawl.signal(runId, "go", { n: 1 }, { dedupKey: "one" });
    await until("the second wait is known", async () => (await journalOf(database, runId)).length === 2);
    await pawl.signal(runId, "go", { n: "again" }, { dedupKey: "one" });
    await pawl.signal(runId, "go", { n: 2 }, { dedupKey: "two" });
    expect(await pawl.result(runId)).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it("two waits for one event that ask for different things are each woken by theirs", async () => {
    const both = workflow({
      name: "both",
      run: async ({ step }) => {
        const order: string[] = [];
        const one = step
          .waitForEvent("one", { event: "go", match: { to: "one" } })
          .then(() => order.push("one"));
        const two = step
          .waitForEvent("two", { event: "go", match: { to: "two" } })
          .then(() => order.push("two"));
        await Promise.all([one, two]);
        return order;
      },
    });
    await serve([both]);
    const { runId } = await pawl.start(both);
    await suspended(database, runId);
    await pawl.signal(runId, "go", { to: "nobody" });
    await pawl.signal(runId, "go", { to: "two" });
    await until("two is recorded", async () => (await recordedBy(database, runId)).includes("two"));
    await pawl.signal(runId, "go", { to: "one" });
    expect(await pawl.result(runId)).toEqual(["two", "one"]);
  });

  it("a signal that comes while the run suspends is not lost, from wherever it is sent", async () => {
    const looping = workflow({
      name: "looping",
      run: async ({ step }, rounds: number) => {
        let sum = 0;
        for (let n = 0; n < rounds; n++) {
          sum += ((await step.waitForEvent(`go-${n}`, { event: "go" })) as { n: number }).n;
        }
        return sum;
      },
    });
    await serve([looping]);
    const { runId } = await pawl.start(looping, 60);
    for (let n = 0; n < 60; n++) {
      if (n % 2 === 0) await pawl.signal(runId, "go", { n });
      else
        await store.signal([{ runId, name: "go", payload: `{"n":${n}}`, dedupKey: null }], { patient: true });
    }
    expect(await pawl.result(runId, { timeout: "100s" })).toBe(1770);
  });
});
