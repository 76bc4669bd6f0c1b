import { DeadlineExceeded, job, RunFailed, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

const reasonOf = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(signal.reason));
  });

it("a step sees ctx.signal at its deadline, without a sweep or a heartbeat, and one event says so", async () => {
  const reasons: unknown[] = [];
  const long = job({
    name: "long",
    timeout: 150,
    run: async (ctx) => {
      reasons.push(await reasonOf(ctx.signal));
      return "too late";
    },
  });
  const body = workflow({
    name: "body",
    timeout: 150,
    run: ({ step }) =>
      step.run("hangs", async ({ signal }) => {
        reasons.push(await reasonOf(signal));
      }),
  });
  const worker = await serve([long, body], { heartbeat: "10s", lease: "1m", reapInterval: "1m" });
  const ended: unknown[] = [];
  worker.on("run.completed", ({ runId, status, code }) => ended.push({ runId, status, code }));
  const started = [
    await pawl.start(long),
    // Not inserted already claimed, but claimed.
    await pawl.start(long, undefined, { partitionKey: "k" }),
    await pawl.start(body),
  ];
  for (const { runId } of started) {
    const error = await pawl.result(runId).catch((caught: unknown) => caught);
    expect((error as RunFailed).error).toMatchObject({ code: "DeadlineExceeded" });
  }
  await until("the steps have heard", async () => reasons.length === 3);
  expect(reasons).toEqual(started.map(() => expect.any(DeadlineExceeded) as DeadlineExceeded));
  const failures = started.map(({ runId }) => ({ runId, status: "failed", code: "DeadlineExceeded" }));
  expect(ended.toSorted(byRun)).toEqual(failures.toSorted(byRun));
  await until("the claims are released", async () => {
    return (await database.sql("select id from runs where locked_by is not null")).length === 0;
  });
});

const byRun = (one: unknown, other: unknown): number =>
  Number((one as { runId: string }).runId) - Number((other as { runId: string }).runId);

it("the clock of a test reaches deadlines: of a run that waits, and of a step that never returns", async () => {
  await using t = await testPawl();
  const sleeper = workflow({ name: "sleeper", timeout: "1h", run: ({ step }) => step.sleep("long", "1d") });
  const hanging = job({ name: "hanging", timeout: "2h", run: (ctx) => reasonOf(ctx.signal).then(() => 0) });
  await t.serve([sleeper, hanging]);
  const begin = t.now().getTime();
  const runs = [await t.pawl.start(sleeper), await t.pawl.start(hanging)];
  await t.advance("59m");
  expect((await t.pawl.runs.get(runs[0]!.runId)).status).toBe("running");
  await t.advance("3h");
  const ended = await Promise.all(runs.map(({ runId }) => t.pawl.runs.get(runId)));
  expect(ended.map(({ error }) => error?.code)).toEqual(["DeadlineExceeded", "DeadlineExceeded"]);
  expect(ended.map(({ completedAt }) => completedAt!.getTime() - begin)).toEqual([3_600_000, 7_200_000]);
});
