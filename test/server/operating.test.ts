import { connect, job, type Run, serve, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

const { url } = await testDatabase();
const secrets = { ops: "ops-secret-0123456789", clerk: "clerk-secret-0123456789" };
const tokens = [`ops:admin:${secrets.ops}`, `clerk:write:${secrets.clerk}`];
const { call, url: server } = await testServer({ database: url, tokens });
const as = (who: keyof typeof secrets, method: string, path: string, body?: unknown) =>
  call(method, path, body, { authorization: `Bearer ${secrets[who]}` });

let isBroken = true;
const fragile = job({
  name: "fragile",
  maxAttempts: 1,
  run: (_ctx, input: { n: number }) => {
    if (isBroken) throw new Error("out of order");
    return input.n;
  },
});
const idle = workflow({ name: "idle", run: ({ step }) => step.waitForEvent("go") });
const worker = serve([fragile, idle], { url, reapInterval: "100ms" });
const remote = connect(server, { token: secrets.ops });
const clerk = connect(server, { token: secrets.clerk });
afterAll(async () => {
  await worker.stop();
  await Promise.all([remote.close(), clerk.close()]);
});

async function failedRun(n: number): Promise<string> {
  isBroken = true;
  const { runId } = await remote.start(fragile, { n });
  await expect(remote.result(runId)).rejects.toMatchObject({ code: "RunFailed" });
  isBroken = false;
  return runId;
}

describe("POST /v1/runs/{id}/rerun", () => {
  it("answers 201 with the new run, below the name of the definition too", async () => {
    const runId = await failedRun(1);
    for (const path of ["/v1/runs", "/v1/workflows/fragile/runs"]) {
      const { status, body, headers } = await as("clerk", "POST", `${path}/${runId}/rerun`, {
        input: { n: 7 },
      });
      const rerun = body as { runId: string };
      expect(status).toBe(201);
      expect(headers.get("location")).toBe(`/v1/runs/${rerun.runId}`);
      expect(await remote.result(rerun.runId)).toBe(7);
      const got = (await as("clerk", "GET", `/v1/runs/${rerun.runId}`)).body as Run;
      expect(got).toMatchObject({ rerunOf: runId, rerunAs: null, originRunId: runId });
    }
  });

  it("answers 409 for a run that has not ended, 404 for an unknown one, 422 for an unknown step", async () => {
    const { runId } = await remote.start(idle);
    const active = await as("clerk", "POST", `/v1/runs/${runId}/rerun`);
    expect(active).toMatchObject({ status: 409, body: { code: "RunActive" } });
    await expect(clerk.runs.rerun(runId)).rejects.toMatchObject({ code: "RunActive" });
    const unknown = await as("clerk", "POST", "/v1/runs/6400064/rerun", {});
    expect(unknown).toMatchObject({ status: 404, body: { code: "RunNotFound" } });
    await remote.runs.cancel(runId);
    const wrong = await as("clerk", "POST", `/v1/runs/${runId}/rerun`, { from: "step-9" });
    expect(wrong).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    const field = await as("clerk", "POST", `/v1/runs/${runId}/rerun`, { form: "step-9" });
    expect(field).toMatchObject({ status: 422 });
  });
});

describe("/v1/bulk", () => {
  it("is for admin only", async () => {
    for (const [method, path, body] of [
      ["POST", "/v1/bulk", { action: "cancel", all: true }],
      ["GET", "/v1/bulk", undefined],
      ["GET", "/v1/bulk/1", undefined],
      ["GET", "/v1/bulk/1/results", undefined],
      ["DELETE", "/v1/bulk/1", undefined],
      ["GET", "/v1/actions", undefined],
      ["PUT", "/v1/limits/mail", { allowed: 1, period: "1s" }],
    ] as const) {
      expect(await as("clerk", method, path, body)).toMatchObject({
        status: 403,
        body: { code: "Forbidden" },
      });
    }
  });

  it("counts in a dry run, starts with 202, is followed and listed, and its client is the same", async () => {
    const runs = [await failedRun(1), await failedRun(2)];
    const where = { name: "fragile", status: "failed", input: { n: 2 } } as const;
    const dry = await as("ops", "POST", "/v1/bulk", { action: "rerun", where, dryRun: true });
    expect(dry).toMatchObject({ status: 200, body: { count: 1, runs: [{ runId: runs[1] }] } });
    const started = await as("ops", "POST", "/v1/bulk", { action: "rerun", where });
    expect(started).toMatchObject({ status: 202, body: { action: "rerun", where, who: "ops", counted: 1 } });
    const { id } = started.body as { id: string };
    const over = await until("it is over", async () => {
      const operation = await remote.bulk.get(id);
      return operation.completedAt === null ? null : operation;
    });
    expect(over).toMatchObject({ status: "completed", done: 1, skipped: 0 });
    const { results } = await remote.bulk.results(id, { outcome: "done" });
    expect(results).toMatchObject([{ runId: runs[1], outcome: "done" }]);
    expect(await remote.result(results[0]!.rerunId!)).toBe(2);
    expect((await remote.bulk.list({ limit: 1 })).operations).toEqual([over]);
    expect(await remote.bulk.stop(id)).toEqual(over);
  });

  it("answers 422 without a filter and 404 for an unknown operation", async () => {
    const none = await as("ops", "POST", "/v1/bulk", { action: "cancel" });
    expect(none).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    for (const [method, path] of [
      ["GET", "/v1/bulk/999"],
      ["GET", "/v1/bulk/none"],
      ["GET", "/v1/bulk/999/results"],
      ["DELETE", "/v1/bulk/999"],
    ] as const) {
      expect(await as("ops", method, path)).toMatchObject({
        status: 404,
        body: { code: "OperationNotFound" },
      });
    }
    await expect(remote.bulk.get("999")).rejects.toMatchObject({ code: "OperationNotFound" });
  });
});

describe("GET /v1/actions", () => {
  it("says which token has done what, when and from where", async () => {
    const runId = await failedRun(3);
    const rerun = await clerk.runs.rerun(runId);
    const { runId: cancelled } = await remote.start(idle);
    await clerk.runs.cancel(cancelled, { reason: "enough" });
    await remote.limits.set("mail", { allowed: 5, period: "1s" });
    const of = async (target: string) => (await remote.actions.list({ target })).actions;
    expect(await of(runId)).toEqual([
      {
        id: expect.any(String),
        at: expect.any(Date),
        who: "clerk",
        from: expect.stringMatching(/127\.0\.0\.1|::1/),
        action: "runs.rerun",
        target: runId,
        detail: { runId: rerun.runId },
      },
    ]);
    expect(await of(cancelled)).toMatchObject([
      { who: "clerk", action: "runs.cancel", detail: { reason: "enough" } },
    ]);
    expect(await of("mail")).toMatchObject([{ who: "ops", action: "limits.set" }]);
  });
});
