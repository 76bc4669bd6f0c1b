import { child, job, machine, type Why, type WhyReason, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const engine = testEngine(database);
const { pawl } = engine;
// No lease is to lapse here, however slow the machine.
const serve: typeof engine.serve = (definitions, options) =>
  engine.serve(definitions, { lease: "1m", ...options });
const { sql } = database;

const plain = job({ name: "plain", run: () => "done" });
await serve([plain]);

/** Why a run waits, once it does so for this reason. */
const whyIs = <Reason extends WhyReason["reason"]>(
  runId: string,
  reason: Reason,
): Promise<Extract<Why, { reason: Reason }>> =>
  until(`the reason of ${runId} is ${reason}`, async () => {
    const why = await pawl.why(runId);
    expect(why.runId).toBe(runId);
    expect(why.text).toMatch(new RegExp(`^run ${runId} .*[^.]$`));
    return why.reason === reason ? why : null;
  }) as never;

const holderOf = async (runId: string): Promise<string> =>
  (await sql<{ locked_by: string }>("select locked_by from runs where id = $1", [runId]))[0]!.locked_by;

const hours = (date: Date | null): number => Math.round((date!.getTime() - Date.now()) / 3_600_000) + 0;

describe("why a run makes no progress", () => {
  it("it has ended: completed, failed with its error, or cancelled with its reason", async () => {
    const done = await pawl.start(plain);
    await pawl.result(done.runId);
    const { completedAt } = await pawl.runs.get(done.runId);
    expect(await pawl.why(done.runId)).toMatchObject({
      reason: "ended",
      phase: "done",
      status: "completed",
      at: completedAt,
      error: null,
      text: `run ${done.runId} has ended: completed at ${completedAt!.toISOString()}`,
    });
    const stops = machine({ name: "stops", steps: { start: (ctx) => ctx.stop("out of paper") } });
    await serve([stops]);
    const failed = await whyIs((await pawl.start(stops, {})).runId, "ended");
    expect(failed).toMatchObject({ status: "failed", error: { message: "out of paper" } });
    expect(failed.text).toMatch(/failed at .*: out of paper$/);
    const { runId } = await pawl.start(plain, undefined, { delay: "1h" });
    await pawl.runs.cancel(runId, { reason: "a mistake" });
    expect(await pawl.why(runId)).toMatchObject({
      reason: "ended",
      status: "cancelled",
      text: expect.stringMatching(/cancelled at .*: a mistake$/),
    });
  });

  it("a live worker executes it", async () => {
    const open = gate();
    const busy = machine({
      name: "busy",
      steps: {
        start: (ctx) => ctx.next("work", ctx.state),
        work: async (ctx) => {
          await open.pass();
          return ctx.done();
        },
      },
    });
    await serve([busy]);
    const { runId } = await pawl.start(busy, {});
    await until("it works", open.entered);
    const worker = await holderOf(runId);
    const why = await whyIs(runId, "executing");
    expect(why).toMatchObject({ phase: "executing", worker });
    expect(why.leaseUntil).toBeInstanceOf(Date);
    expect(why.text).toBe(`run ${runId} is being executed at step "work" by worker ${worker}`);
    open.open();
  });

  it("its worker has died: until its lease has passed", async () => {
    const orphan = await pawl.start(job({ name: "orphan", run: () => 0 }), null, { queue: "graves" });
    const lease =
      "insert into workers values ('silent', $1::interval, '{}', '{}', '{}', clock_timestamp(), clock_timestamp())";
    await sql(lease, ["1 h"]);
    await sql("update runs set status = 'executing', locked_by = 'silent', claim_id = 1 where id = $1", [
      orphan.runId,
    ]);
    expect(await pawl.why(orphan.runId)).toMatchObject({ reason: "executing", worker: "silent" });
    // Reapers must not come first: beats are said to have begun only now.
    await sql("update settings set beats_since = clock_timestamp() + interval '1 h'");
    await sql("update workers set seen_at = clock_timestamp() - interval '2 h' where id = 'silent'");
    const why = await whyIs(orphan.runId, "worker_dead");
    expect(hours(why.leaseUntil)).toBe(-1);
    expect(why.text).toContain(`by worker silent, which sends no heartbeats`);
    expect(why.text).toContain(why.leaseUntil!.toISOString());
    await sql("update settings set beats_since = clock_timestamp() - interval '1 h'");
    await until("it is reaped", async () => (await pawl.why(orphan.runId)).phase === "runnable");
  });

  it("it waits for signals: which, since when, until when, and what is in the inbox instead", async () => {
    const waits = machine({
      name: "waits",
      steps: {
        start: (ctx) =>
          ctx.awaitSignal(["paid", "refused"], "start", ctx.state, { timeout: "2h", match: { order: 7 } }),
      },
    });
    await serve([waits]);
    const { runId } = await pawl.start(waits, {});
    const empty = await whyIs(runId, "awaiting_signal");
    expect(empty).toMatchObject({ names: ["paid", "refused"], match: { order: 7 }, inbox: {} });
    expect(hours(empty.until)).toBe(2);
    expect(hours(empty.since)).toBe(0);
    expect(empty.text).toContain('waits for the signal "paid" or "refused" matching {"order":7} (since ');
    expect(empty.text).toContain(`until ${empty.until!.toISOString()}); its inbox is empty`);
    for (const order of [1, 2]) await pawl.signal(runId, "paid", { order });
    await pawl.signal(runId, "other");
    const why = await whyIs(runId, "awaiting_signal");
    expect(why.inbox).toEqual({ paid: 2, other: 1 });
    expect(why.text).toContain('its inbox has 2 × "paid", 1 × "other"');
  });

  it("it is a workflow that is suspended: in which steps, for which signals, runs and time", async () => {
    const waits = workflow({
      name: "suspended",
      run: ({ step }) =>
        Promise.race([
          step.waitForEvent("pay", { event: "paid", match: { order: 7 }, timeout: "3h" }),
          step.invoke("ship", plain, undefined, { delay: "4h" }),
          step.sleep("pause", "2h"),
        ]),
    });
    const sleeps = workflow({ name: "sleeps", run: ({ step }) => step.sleep("pause", "2h") });
    await serve([waits, sleeps]);
    const { runId } = await pawl.start(waits, {});
    const why = await whyIs(runId, "suspended");
    const [invoked] = (await pawl.runs.list({ name: "plain" })).runs.filter(
      ({ parentId }) => parentId === runId,
    );
    expect(why).toMatchObject({
      steps: ["pay", "ship", "pause"],
      names: ["paid"],
      matches: { paid: { order: 7 } },
      children: [invoked!.runId],
      inbox: {},
    });
    expect(hours(why.until)).toBe(2);
    expect(why.text).toContain(
      `is suspended in step "pay" and "ship" and "pause" (since ${why.since.toISOString()}) and waits for the signal "paid" matching {"order":7} or the end of run ${invoked!.runId} or ${why.until!.toISOString()}`,
    );
    expect(why.text).toMatch(/; its inbox is empty$/);
    const asleep = await whyIs((await pawl.start(sleeps, {})).runId, "suspended");
    expect(asleep.text).toMatch(/ is suspended in step "pause" \(since [^;]*\) and waits for [^;]*$/);
  });

  it("it waits for a signal without end, and nobody serves it any more", async () => {
    const patient = machine({
      name: "patient",
      steps: { start: (ctx) => ctx.awaitSignal("go", "start", ctx.state) },
    });
    const worker = await serve([patient]);
    const { runId } = await pawl.start(patient, {});
    expect(await whyIs(runId, "awaiting_signal")).toMatchObject({ names: ["go"], match: null, until: null });
    await worker.stop();
    expect((await pawl.why(runId)).text).toContain("; also, no live worker serves patient@1");
  });

  it("it waits for its children: how many, and the first ten that are unfinished", async () => {
    const parent = machine({
      name: "parent",
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "start",
            [child(plain), ...Array.from({ length: 12 }, () => child("nobody", 0))],
            ctx.state,
          ),
      },
    });
    await serve([parent]);
    const { runId } = await pawl.start(parent, {});
    await until("one has ended", async () => {
      const why = await pawl.why(runId);
      return why.reason === "awaiting_children" && why.unfinished === 12;
    });
    const why = await whyIs(runId, "awaiting_children");
    const rows = await sql<{ id: string }>(
      "select id::text from runs where parent_id = $1 and status <> 'done' order by position limit 10",
      [runId],
    );
    expect(why.children).toEqual(rows.map(({ id }) => id));
    expect(hours(why.since)).toBe(0);
    expect(why.text).toContain(`waits for 12 of its children: ${why.children.join(", ")}, … (since `);
  });

  it("an operator holds it", async () => {
    const { runId } = await pawl.start(plain, undefined, { queue: "still" });
    await sql("update runs set hold = 4 where id = $1", [runId]);
    expect(await pawl.why(runId)).toMatchObject({
      reason: "held",
      text: `run ${runId} is held by an operator`,
    });
  });

  it("nobody serves it: not ever, not any more, or in other versions only", async () => {
    const never = await pawl.start("never-heard-of", {});
    expect(await pawl.why(never.runId)).toMatchObject({
      reason: "unserved",
      name: "never-heard-of",
      version: 1,
      servedVersions: [],
      registered: false,
      text: expect.stringContaining("no live worker serves never-heard-of@1; none ever has"),
    });
    const [v1, v2, v3] = [1, 2, 3].map((version) => job({ name: "grown", version, run: () => version }));
    await (await serve([v1!])).stop();
    const gone = await pawl.start(v1!, null);
    expect(await pawl.why(gone.runId)).toMatchObject({
      reason: "unserved",
      registered: true,
      servedVersions: [],
    });
    await serve([v2!, v3!]);
    expect(await pawl.why(gone.runId)).toMatchObject({
      reason: "unserved",
      servedVersions: [2, 3],
      text: expect.stringContaining("no live worker serves grown@1; live workers serve version 2, 3 only"),
    });
  });

  it("no worker that serves it has its queue", async () => {
    const { runId } = await pawl.start(plain, undefined, { queue: "far-away" });
    expect(await pawl.why(runId)).toMatchObject({
      reason: "queue_unserved",
      queue: "far-away",
      text: expect.stringContaining('no live worker serves plain@1 on queue "far-away"'),
    });
  });

  it("its rate limit has put it off", async () => {
    await pawl.limits.set("hourly", { allowed: 1, period: "1h", burst: 1 });
    const rateLimit = { name: "hourly", key: "alice" };
    await pawl.result((await pawl.start(plain, undefined, { rateLimit })).runId);
    const why = await whyIs((await pawl.start(plain, undefined, { rateLimit })).runId, "throttled");
    expect(why.rateLimit).toBe("hourly:alice");
    expect(hours(why.until)).toBe(1);
    expect(why.text).toContain(`by the rate limit "hourly:alice" until ${why.until.toISOString()}`);
  });

  it("it is not due: a delay, or a retry after an error", async () => {
    const delayed = await pawl.why((await pawl.start(plain, undefined, { delay: "3h" })).runId);
    expect(delayed).toMatchObject({ reason: "not_due", attempt: 0, crashes: 0, error: null });
    const flaky = job({
      name: "flaky",
      backoff: () => "4h",
      run: () => {
        throw new Error("no network");
      },
    });
    await serve([flaky]);
    const why = await whyIs((await pawl.start(flaky)).runId, "not_due");
    expect(why).toMatchObject({ attempt: 1, crashes: 0, error: { message: "no network" } });
    expect(hours(why.until)).toBe(4);
    expect(why.text).toContain(
      `is due at ${why.until.toISOString()}, attempt 2, after the error: no network`,
    );
  });

  it("it is debounced, and until when at most; its deadline is in the sentence", async () => {
    const debounce = { key: "often", delay: "3h", maxDelay: "5h" } as const;
    const why = await whyIs(
      (await pawl.start(plain, undefined, { debounce, timeout: "1h" })).runId,
      "debounced",
    );
    expect(why.key).toBe("often");
    expect([hours(why.until), hours(why.latest), hours(why.deadlineAt!)]).toEqual([3, 5, 4]);
    expect(why.text).toMatch(
      /is debounced until .* moves that, but not beyond .*; its deadline is in 240 minutes, at /,
    );
    const { deadlineAt } = await pawl.why((await pawl.start(plain, undefined, { delay: "1h" })).runId);
    expect(deadlineAt).toBeUndefined();
  });

  it("another run has its key, a cancelled one that still runs too, or is before it in line", async () => {
    const open = gate();
    const keyed = job({ name: "keyed", run: open.pass });
    await serve([keyed], { drainTimeout: "1h" });
    const holder = await pawl.start(keyed, undefined, { partitionKey: "one" });
    await until("it runs", open.entered);
    const worker = await holderOf(holder.runId);
    const next = await pawl.start(keyed, undefined, { partitionKey: "one" });
    const why = await whyIs(next.runId, "key_taken");
    expect(why).toMatchObject({ partitionKey: "one", holder: holder.runId, worker });
    expect(why.text).toContain(`key "one", which run ${holder.runId} holds on worker ${worker}`);
    await pawl.runs.cancel(holder.runId);
    expect(await pawl.why(next.runId)).toMatchObject({ reason: "key_taken", holder: holder.runId, worker });
    open.open();
    await pawl.result(next.runId);

    const full = gate();
    const other = job({ name: "fills-far-away", queue: "far-away", run: full.pass });
    // Started first, so that a claim takes it: no other claim is on its way when the next runs start.
    await pawl.start(other);
    await serve([other, plain], { queues: { "far-away": 1, default: 1 } });
    await until("the slot of the queue is taken", full.entered);
    const first = await pawl.start(plain, undefined, {
      partitionKey: "two",
      priority: -1,
      queue: "far-away",
    });
    const second = await whyIs(
      (await pawl.start(plain, undefined, { partitionKey: "two" })).runId,
      "key_taken",
    );
    expect(second).toMatchObject({ holder: first.runId, worker: null });
    expect(second.text).toContain(`key "two": run ${first.runId} is before it in line`);
    full.open();
  });

  it("the database cannot claim it: it is set aside, and the others of its queue go on", async () => {
    const spoilt = job({ name: "spoilt", queue: "spoilt", run: () => "done" });
    await serve([spoilt]);
    const { runId } = await pawl.start(spoilt, undefined, { delay: "1h" });
    await sql(
      `update runs set awaits = '{"children": "many"}', eligible_at = clock_timestamp() where id = $1`,
      [runId],
    );
    const others = await pawl.startMany(spoilt, Array(3).fill({ input: undefined as never, priority: 1 }));
    for (const other of others) expect(await pawl.result(other.runId)).toBe("done");
    const why = await whyIs(runId, "set_aside");
    expect(why).toMatchObject({ error: { code: "22P02" } });
    expect(why.text).toContain("is set aside, because the database cannot claim it: invalid input syntax");
    await pawl.runs.cancel(runId);
    expect(await pawl.why(runId)).toMatchObject({ reason: "ended" });
  });

  it("it may be claimed at any moment: all workers are busy", async () => {
    const open = gate();
    const narrow = job({ name: "narrow", queue: "narrow", run: open.pass });
    // Started first, so that a claim takes it: no other claim is on its way when the next run starts.
    await pawl.start(narrow);
    await serve([narrow], { queues: { narrow: 1 } });
    await until("the slot is taken", open.entered);
    const { runId } = await pawl.start(narrow);
    const { eligibleAt } = await pawl.runs.get(runId);
    expect(await pawl.why(runId)).toMatchObject({
      reason: "claimable",
      phase: "runnable",
      queue: "narrow",
      since: eligibleAt,
      text: expect.stringContaining('a free slot for queue "narrow"'),
    });
    open.open();
  });
});

describe("pawl.why", () => {
  it("throws RunNotFound for a run that is not there, and InvalidOption for what is no id", async () => {
    for (const runId of ["4611686018427387904", "nonsense"]) {
      await expect(pawl.why(runId)).rejects.toMatchObject({ code: "RunNotFound" });
    }
    await expect(pawl.why(12 as never)).rejects.toMatchObject({ code: "InvalidOption" });
  });
});
