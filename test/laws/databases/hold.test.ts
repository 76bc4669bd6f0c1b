import { fork, hold, job, machine, type, workflow } from "pawl";
import { beforeEach, describe, expect, it } from "vitest";
import { copyName, copyOf, type Side, sideOf } from "../../support/copies.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const { url, store } = await testDatabase();
beforeEach(() => hold.release({ url }).then(() => {}));

const warnings = (): { texts: string[]; logger: typeof silent } => {
  const texts: string[] = [];
  return { texts, logger: { ...silent, warn: (_: unknown, text: string) => void texts.push(text) } as never };
};

/** A worker has beaten so often from now on, and looked for work meanwhile. */
async function beats(side: Side, times: number): Promise<void> {
  const seen = new Set<string>();
  await until(`a worker has beaten ${times} times`, async () => {
    for (const { at } of await side.sql<{ at: string }>("select max(seen_at)::text as at from workers"))
      seen.add(at);
    return seen.size > times;
  });
}

const untouched =
  "select count(*)::int as n from runs where claim_id is not null or status not in ('runnable', 'awaiting_signal')";

describe("a held copy", () => {
  it("stays still with a worker connected, takes starts and signals, and goes on when it is adopted", async () => {
    const done: string[] = [];
    const mail = job({ name: "mail", run: (ctx) => void done.push(ctx.runId) });
    const wait = machine({
      name: "wait",
      state: type<object>(),
      steps: {
        start: (ctx) => ctx.awaitSignal("go", "end", ctx.state),
        end: (ctx) => {
          done.push(ctx.runId);
          return ctx.done(null);
        },
      },
    });
    const here = sideOf(url);
    const first = await here.serve([wait]);
    const parked = await here.pawl.start(wait, {});
    await until("it waits", async () => (await here.pawl.runs.get(parked.runId)).phase === "awaiting_signal");
    await first.stop();
    const due = await here.pawl.startMany(mail, [
      ...Array.from({ length: 100 }, () => ({ input: null })),
      ...Array.from({ length: 10 }, () => ({ input: null, partitionKey: "one" })),
    ]);
    await here.pawl.start(mail, null, { delay: 1 });

    const made = await copyOf(url, { name: copyName(), held: true });
    expect(made.held).toBe(true);
    const there = sideOf(made.url);
    // The run that was parked has been claimed before.
    await there.sql("update runs set claim_id = null");
    const { texts, logger } = warnings();
    await there.serve([mail, wait], { logger });
    const started = await there.pawl.start(mail);
    expect((await there.pawl.runs.get(started.runId)).phase).toBe("runnable");
    expect(await there.pawl.signal(parked.runId, "go")).toEqual({ delivered: true });
    await beats(there, 4);
    expect(await there.sql(untouched)).toEqual([{ n: 0 }]);
    expect(done).toEqual([]);
    expect(texts).toEqual([expect.stringMatching(/is a copy/), expect.stringMatching(/is held/)]);
    expect(await there.pawl.why(due[0]!.runId)).toMatchObject({ reason: "held", what: "database" });

    // The original is not held.
    await here.serve([mail]);
    await here.pawl.result(due[0]!.runId, { timeout: "100s" });
    expect((await there.pawl.runs.get(due[0]!.runId)).phase).toBe("runnable");

    done.length = 0;
    expect(await fork.adopt({ url: made.url })).toEqual({ wasHeld: true, wasCopy: true });
    const ids = [...due.map(({ runId }) => runId), started.runId, parked.runId];
    for (const runId of ids) await there.pawl.result(runId, { timeout: "100s" });
    expect(await fork.adopt({ url: made.url })).toEqual({ wasHeld: false, wasCopy: false });
  });

  it("is held from its first moment on, also if its maker dies before it can say so", async () => {
    const here = sideOf(url);
    const mail = job({ name: "mail", run: () => null });
    const { runId } = await here.pawl.start(mail);
    const name = copyName();
    // As the maker leaves it: the original knows which copy is to be held, the copy does not know that it is that copy.
    const made = await copyOf(url, { name });
    const there = sideOf(made.url);
    await there.sql("select pawl.set_held_copy($1)", [name]);
    expect(await there.pawl.why(runId)).toMatchObject({ reason: "held" });
    await there.serve([mail]);
    await beats(there, 3);
    expect((await there.pawl.runs.get(runId)).phase).toBe("runnable");
    await hold.release({ url: made.url });
    await there.pawl.result(runId, { timeout: "100s" });
  });
});

describe("a database that is held while workers work in it", () => {
  it("lets steps end that are being executed, and begins no other", async () => {
    const here = sideOf(url);
    const { open, pass, entered } = gate();
    const begun: string[] = [];
    const two = machine({
      name: "two",
      state: type<object>(),
      steps: {
        start: async (ctx) => {
          await pass();
          return ctx.next("second", {});
        },
        second: (ctx) => {
          begun.push(ctx.name);
          return ctx.done("done");
        },
      },
    });
    const body = workflow({
      name: "body",
      run: async (ctx) => {
        await ctx.step.run("first", pass);
        return ctx.step.run("second", () => {
          begun.push(ctx.name);
          return "done";
        });
      },
    });
    const { texts, logger } = warnings();
    await here.serve([two, body], { logger });
    const runs = [await here.pawl.start(two, {}), await here.pawl.start(body)];
    await until("both are at their first step", () => entered() === 2);
    expect(await hold({ url })).toEqual({ changed: true });
    expect(await hold({ url })).toEqual({ changed: false });
    await until("the worker has heard of it", () => texts.some((text) => text.includes("is held")));
    open();
    for (const { runId } of runs) {
      await until("it is let go", async () => (await here.pawl.why(runId)).reason === "held");
    }
    await beats(here, 3);
    expect(begun).toEqual([]);
    expect(await here.pawl.runs.steps(runs[1]!.runId)).toMatchObject([
      { name: "first", status: "completed" },
    ]);
    await hold.release({ url });
    for (const { runId } of runs) expect(await here.pawl.result(runId, { timeout: "100s" })).toBe("done");
    expect(begun.toSorted()).toEqual(["body", "two"]);
    expect(await here.sql("select max(attempt) as attempts from runs")).toEqual([{ attempts: 0 }]);
  });

  it("hands nothing over to workers that have not heard of it yet: by a start, a signal, or the end of a run", async () => {
    const here = sideOf(url);
    const { open, pass, entered } = gate();
    const keyed = job({ name: "keyed", run: pass });
    const mail = job({ name: "mail", run: () => null });
    const wait = machine({
      name: "wait",
      state: type<object>(),
      steps: {
        start: (ctx) => ctx.awaitSignal("go", "end", ctx.state),
        end: (ctx) => ctx.done(null),
      },
    });
    const { texts, logger } = warnings();
    await here.serve([keyed, mail, wait], { lease: "5m", heartbeat: "1m", logger });
    const beaten = "select from workers where seen_at > registered_at and lease > '1 min'";
    await until("it has beaten, for the next minute", async () => (await here.sql(beaten)).length > 0);
    const parked = await here.pawl.start(wait, {});
    await until("it waits", async () => (await here.pawl.runs.get(parked.runId)).phase === "awaiting_signal");
    const [first, second] = await here.pawl.startMany(keyed, [
      { input: null, partitionKey: "key" },
      { input: null, partitionKey: "key" },
    ]);
    await until("the first has the key", entered);
    await until(
      "the second is blocked",
      async () => (await here.sql("select from runs where hold = 1")).length > 0,
    );
    await hold({ url });
    const started = await here.pawl.start(mail);
    await here.pawl.signal(parked.runId, "go");
    open();
    await here.pawl.result(first!.runId, { timeout: "100s" });
    const waiting = [second!, started, parked];
    for (const { runId } of waiting) {
      expect(await here.pawl.why(runId)).toMatchObject({ reason: "held", phase: "runnable" });
    }
    expect(entered()).toBe(1);
    expect(texts).toEqual([]);
    await hold.release({ url });
    for (const { runId } of waiting) await here.pawl.result(runId, { timeout: "100s" });
  });

  it("says of runs that wait for something else that it is held besides", async () => {
    const here = sideOf(url);
    const nap = workflow({ name: "nap", run: (ctx) => ctx.step.sleep("night", "8h") });
    await here.serve([nap]);
    const { runId } = await here.pawl.start(nap);
    await until("it sleeps", async () => (await here.pawl.why(runId)).reason === "suspended");
    await hold({ url });
    expect((await here.pawl.why(runId)).text).toMatch(/is suspended .*; also, the database is held$/);
  });

  it("fires what fell due meanwhile when it is released", async () => {
    const here = sideOf(url);
    const nap = workflow({ name: "nap", run: (ctx) => ctx.step.sleep("night", 2_000) });
    await here.serve([nap]);
    const { runId } = await here.pawl.start(nap);
    await until("it sleeps", async () => (await here.pawl.why(runId)).reason === "suspended");
    await hold({ url });
    const due =
      "select from runs where id = $1 and status = 'awaiting_signal' and eligible_at < clock_timestamp()";
    await until("it is due", async () => (await here.sql(due, [runId])).length > 0);
    await beats(here, 2);
    expect(await here.pawl.why(runId)).toMatchObject({ reason: "held", phase: "awaiting_signal" });
    await hold.release({ url });
    await here.pawl.result(runId, { timeout: "100s" });
  });

  it("deletes no dedup key of a publication, however old", async () => {
    const here = sideOf(url);
    const publish = () => here.pawl.topics.publish("kept", {}, { dedupKey: "old" });
    expect(await publish()).toMatchObject({ created: true });
    // Held first: the servers of other tests look too.
    await hold({ url });
    await here.sql("update publications set expires_at = clock_timestamp() - interval '1 day'");
    const looks: (() => Promise<unknown>)[] = [
      () => store.expire(1_000, null),
      () => store.recover({ limit: 1_000, repairs: true, marks: null }),
      () => store.sweep(1_000),
    ];
    for (const look of looks) await look();
    expect(await publish()).toMatchObject({ created: false });
    await hold.release({ url });
    await store.expire(1_000, null);
    expect(await publish()).toMatchObject({ created: true });
  });

  it("deletes nothing, however old", async () => {
    const here = sideOf(url);
    const [row] = await here.sql<{ id: string }>(
      `insert into runs (id, status, name, queue, priority, retention, eligible_at, inserted_at, completed_at, expires_at, input)
      select 64 * nextval('run_ids'), 'done', 'old', 'old', 0, '1 d', t, t, t, t, '1' from (select clock_timestamp() - interval '1 year' as t) t
      returning id`,
    );
    await hold({ url });
    expect(await store.sweep(1_000)).toEqual({ swept: 0, last: null });
    expect(await here.pawl.runs.get(row!.id)).toMatchObject({ name: "old" });
    await hold.release({ url });
    expect((await store.sweep(1_000)).swept).toBeGreaterThan(0);
  });
});
