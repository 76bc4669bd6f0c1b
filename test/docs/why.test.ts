import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect, job, machine, child, serve, signal, type Why, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { readPage, root, rowNames } from "./pages.js";

// Every reason that docs/why.md lists is brought about, and the sentence of the guide must be what `why` says.

const { url, sql } = await testDatabase();
const pawl = connect(url);
const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let finish = (): void => {};
const finished = new Promise<void>((resolve) => (finish = resolve));
const slow = job({ name: "slow", run: () => finished });
const busy = machine({ name: "busy", steps: { start: (ctx) => finished.then(() => ctx.done()) } });
const failing = job({
  name: "failing",
  maxAttempts: 1,
  run: () => {
    throw new Error("E");
  },
});
const waiting = machine({
  name: "waiting",
  signals: { n: signal() },
  steps: {
    start: (ctx) => ctx.awaitSignal("n", "end", {}),
    end: (ctx) => ctx.done(),
  },
});
const parent = machine({
  name: "parent",
  steps: {
    start: (ctx) => ctx.spawn("end", [child(waiting, {}), child(waiting, {})], {}),
    end: (ctx) => ctx.done(),
  },
});
const suspending = workflow({ name: "suspending", run: (ctx) => ctx.step.waitForEvent("n") });
const narrow = job({ name: "narrow", queue: "narrow", run: () => finished });
const worker = serve([slow, busy, failing, waiting, suspending, parent, narrow], {
  url,
  logger,
  queues: { default: 10, narrow: 1 },
  limits: { l: { allowed: 1, period: "1h" } },
});
await worker.ready;
afterAll(async () => {
  finish();
  await worker.stop();
  await pawl.close();
});

const rows = new Map(
  [...readPage("docs/why.md").matchAll(/^\| `(\w+)`\s*\| `([^`]+)`/gm)].map(([, reason = "", text = ""]) => [
    reason,
    text,
  ]),
);

/** A run that has this phase, or that is just started. */
const started: Record<Why["reason"], () => Promise<string>> = {
  ended: async () => (await pawl.start(failing, null)).runId,
  executing: async () => (await pawl.start(busy, {}, { step: "start" })).runId,
  worker_dead: async () => {
    const { runId } = await pawl.start("nobodys", {});
    await sql(
      "update runs set status = 'executing', locked_by = 'dead', hold = 0, queue = 'q', priority = 0, retention = '1 day' where id = $1",
      [runId],
    );
    await sql(
      "insert into workers (id, lease, serves, queues, registered_at, seen_at) values ('dead', '1 hour', '{}', '{}', clock_timestamp(), clock_timestamp() - interval '2 hours')",
    );
    return runId;
  },
  awaiting_signal: async () => (await pawl.start(waiting, {})).runId,
  suspended: async () => (await pawl.start(suspending, null)).runId,
  awaiting_children: async () => (await pawl.start(parent, {})).runId,
  paused: async () => {
    const { runId } = await pawl.start(slow, null, { delay: "1h" });
    await pawl.runs.pause(runId);
    return runId;
  },
  held: async () => {
    const { runId } = await pawl.start(slow, null, { delay: "1h" });
    await sql("update runs set hold = 4 where id = $1", [runId]);
    return runId;
  },
  set_aside: async () => {
    const { runId } = await pawl.start(slow, null, { delay: "1h" });
    const error = { name: "ClaimFailed", code: "22008", message: "interval out of range" };
    await sql("update runs set hold = 8, eligible_at = clock_timestamp(), error = $1 where id = $2", [
      error,
      runId,
    ]);
    return runId;
  },
  unserved: async () => (await pawl.start("nobodys", {})).runId,
  queue_unserved: async () => (await pawl.start(slow, null, { queue: "elsewhere" })).runId,
  throttled: async () => {
    await pawl.start(failing, null, { rateLimit: "l" });
    return (await pawl.start(failing, null, { rateLimit: "l" })).runId;
  },
  not_due: async () => (await pawl.start(slow, null, { delay: "1h" })).runId,
  debounced: async () =>
    (await pawl.start(slow, null, { debounce: { key: "k", delay: "1h", maxDelay: "2h" } })).runId,
  key_taken: async () => {
    const { runId } = await pawl.start(slow, null, { partitionKey: "k" });
    await until("it holds the key", async () => (await pawl.runs.get(runId)).phase === "executing");
    return (await pawl.start(slow, null, { partitionKey: "k" })).runId;
  },
  limit_full: async () => {
    await pawl.limits.set("full", { concurrent: 3 });
    const hold = () => pawl.start(slow, null, { concurrency: "full" });
    for (const { runId } of [await hold(), await hold(), await hold()]) {
      await until("it holds a slot", async () => (await pawl.runs.get(runId)).phase === "executing");
    }
    return (await hold()).runId;
  },
  claimable: async () => {
    await pawl.start(narrow, null);
    return (await pawl.start(narrow, null)).runId;
  },
};

describe("docs/why.md", () => {
  it("lists every reason, and no other", () => {
    const source = readFileSync(join(root, "packages/pawl/src/store/views.ts"), "utf8");
    const reasons = [...source.matchAll(/readonly reason: "(\w+)"/g)].map(([, reason = ""]) => reason);
    expect(rowNames(readPage("docs/why.md")).toSorted()).toEqual(reasons.toSorted());
    expect(Object.keys(started).toSorted()).toEqual(reasons.toSorted());
  });

  it.each(Object.entries(started))("says of %s what why says", async (reason, begin) => {
    const runId = await begin();
    await until(`the reason is ${reason}`, async () => (await pawl.why(runId)).reason === reason);
    const { text } = await pawl.why(runId);
    // Capital letters stand for what differs from run to run, a name or a time.
    const sentence = rows.get(reason)!.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    expect(text).toMatch(new RegExp(`^run ${runId} ${sentence.replaceAll(/\b[A-Z]\b/g, ".+?")}`));
  });
});
