import { once } from "node:events";
import { job, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

const idsOf = (started: readonly { runId: string }[]): string[] => started.map(({ runId }) => runId);

describe("a run of a batch job", () => {
  it("has tags: lists and bulk operations find it by them", async () => {
    const send = job({ name: "send", batch: { size: 2, wait: "10ms" }, run: () => null });
    const items = ["a", "b"].map((customer) => ({ input: undefined, tags: { customer } }));
    const [a, b] = idsOf(await pawl.startMany(send, items));
    await serve([send]);
    for (const runId of [a!, b!]) await pawl.result(runId);
    expect((await pawl.runs.list({ name: "send", tags: { customer: "b" } })).runs).toMatchObject([
      { runId: b, tags: { customer: "b" } },
    ]);
    expect((await pawl.runs.bulk({ where: { tags: { customer: "a" } }, action: "delete" })).counted).toBe(1);
  });

  it("fails at its own deadline, and the other runs of the call complete", async () => {
    const slow = job({
      name: "slow",
      input: type<string>(),
      batch: { size: 2, wait: "500ms" },
      run: async (_ctx, items) => {
        // On a very slow machine the deadline passes before the call, and it has one run.
        if (items.length === 2) await once(items.find(({ input }) => input === "late")!.signal, "abort");
        return items.map(({ signal }) => signal.aborted);
      },
    });
    await serve([slow]);
    const items = [{ input: "late", timeout: "1s" } as const, { input: "good" }];
    const [late, good] = idsOf(await pawl.startMany(slow, items));
    expect(await pawl.result(good!)).toBe(false);
    await expect(pawl.result(late!)).rejects.toMatchObject({ code: "RunFailed" });
    expect((await pawl.runs.get(late!)).error).toMatchObject({ code: "DeadlineExceeded" });
  });

  it("takes a slot of its concurrency limit: a call has at most as many runs of the limit", async () => {
    await pawl.limits.set("partner", { concurrent: 2 });
    const sizes: number[] = [];
    const push = job({
      name: "push",
      batch: { size: 10, wait: "10ms" },
      run: (_ctx, items) => {
        sizes.push(items.length);
        return null;
      },
    });
    const items = Array.from({ length: 6 }, () => ({ input: undefined, concurrency: "partner" }));
    const started = idsOf(await pawl.startMany(push, items));
    await serve([push], { queues: { default: 1 } });
    for (const runId of started) await pawl.result(runId);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(6);
  });

  it("takes a token of its rate limit: the others come in a later call", async () => {
    await pawl.limits.set("api", { allowed: 1, period: "1h", burst: 3 });
    const sizes: number[] = [];
    const ask = job({
      name: "ask",
      batch: { size: 10, wait: "10ms" },
      run: (_ctx, items) => void sizes.push(items.length),
    });
    const items = Array.from({ length: 5 }, () => ({ input: undefined, rateLimit: "api" }));
    const started = idsOf(await pawl.startMany(ask, items));
    await serve([ask]);
    await until("three have ended and two are throttled", async () => {
      const reasons = (await Promise.all(started.map((runId) => pawl.why(runId)))).map(
        ({ reason }) => reason,
      );
      return reasons.toSorted().join() === "ended,ended,ended,throttled,throttled";
    });
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(3);
  });
});
