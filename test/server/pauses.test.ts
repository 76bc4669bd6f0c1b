import { connect, job, RunEnded, serve } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { testServer } from "../support/server.js";

const { url } = await testDatabase();
const secret = (name: string): string => `${name}-secret-of-the-pauses-test-0123456789`;
const { url: address, call } = await testServer({
  database: url,
  logger: silent,
  tokens: [
    `ops:read+write+admin:${secret("ops")}`,
    `app:read+write:${secret("app")}`,
    `mail:read+write+admin:names=mail-:${secret("mail")}`,
  ],
});
const as = (who: string, method: string, path: string, body?: unknown): ReturnType<typeof call> =>
  call(method, path, body, { authorization: `Bearer ${secret(who)}` });
const pawl = connect(url);
const remote = connect(address, { token: secret("ops") });
const double = job({ name: "mail-double", run: (_ctx, n: number) => n * 2 });
const worker = serve([double], { url, logger: silent });
await worker.ready;
afterAll(async () => {
  await worker.stop();
  await remote.close();
  await pawl.close();
});

describe("pauses over REST", () => {
  it("a token that may write pauses and resumes a run, and is named", async () => {
    const { runId } = await pawl.start(double, 1, { delay: "1h" });
    expect(await as("app", "POST", `/v1/runs/${runId}/pause`)).toMatchObject({
      status: 200,
      body: { changed: true },
    });
    expect((await as("app", "GET", `/v1/runs/${runId}`)).body).toMatchObject({
      paused: { scope: "run", by: "app", reason: null, since: expect.any(String) as string },
    });
    expect((await as("app", "GET", "/v1/runs?paused=true")).body).toMatchObject({ runs: [{ runId }] });
    expect((await as("app", "GET", "/v1/runs/count?paused=true")).body).toEqual({ count: 1 });
    expect((await as("app", "POST", `/v1/runs/${runId}/resume`)).body).toEqual({ changed: true });
    expect((await as("app", "POST", `/v1/runs/${runId}/resume`)).body).toEqual({ changed: false });
    expect((await as("app", "POST", "/v1/runs/6400064/pause")).status).toBe(404);
    await pawl.runs.cancel(runId);
    expect(await as("app", "POST", `/v1/runs/${runId}/pause`)).toMatchObject({
      status: 409,
      body: { code: "RunEnded" },
    });
  });

  it("pauses of queues and definitions need admin, within the prefixes of the token", async () => {
    for (const path of ["/v1/queues/q/pause", "/v1/definitions/mail-double/pause"]) {
      expect((await as("app", "POST", path, {})).status).toBe(403);
    }
    expect((await as("mail", "POST", "/v1/definitions/other/pause", {})).status).toBe(403);
    expect((await as("mail", "POST", "/v1/queues/q/pause", {})).status).toBe(403);
    const given = { by: "alice", reason: "maintenance", version: 1 };
    const pause = await as("mail", "POST", "/v1/definitions/mail-double/pause", given);
    expect(pause.body).toEqual({ changed: true });
    await as("ops", "POST", "/v1/queues/q/pause", {});
    expect((await as("ops", "GET", "/v1/pauses")).body).toMatchObject({
      pauses: [
        { scope: "queue", name: "q", version: null, by: "ops" },
        { scope: "definition", name: "mail-double", version: 1, by: "alice (token mail)" },
      ],
    });
    expect((await as("mail", "GET", "/v1/pauses")).body).toMatchObject({ pauses: [{ name: "mail-double" }] });
    expect((await as("ops", "POST", "/v1/queues/q/resume")).body).toMatchObject({ changed: true });
    const resume = await as("ops", "POST", "/v1/definitions/mail-double/resume", { version: 1 });
    expect(resume.body).toEqual({ changed: true, still: false });
    expect((await as("ops", "POST", "/v1/queues/q/pause", { why: "x" })).status).toBe(422);
  });

  it("a client through the server has the same calls and answers", async () => {
    await remote.definitions.pause(double, { reason: "an incident" });
    expect(await remote.definitions.paused()).toMatchObject([
      { name: "mail-double", version: null, by: "ops", reason: "an incident" },
    ]);
    const { runId } = await remote.start(double, 21);
    const { paused } = await remote.runs.get(runId);
    expect(paused).toMatchObject({ scope: "definition", by: "ops", reason: "an incident" });
    expect(paused?.since).toBeInstanceOf(Date);
    const why = await remote.why(runId);
    expect(why).toMatchObject({ reason: "paused", given: "an incident" });
    expect(why.reason === "paused" && why.since).toBeInstanceOf(Date);
    expect(await remote.definitions.resume(double)).toEqual({ changed: true, still: false });
    expect(await remote.result(runId)).toBe(42);
    expect(await remote.queues.pause("q")).toEqual({ changed: true });
    expect(await remote.queues.resume("q")).toEqual({ changed: true });
    await expect(remote.runs.pause(runId)).rejects.toThrow(RunEnded);
    expect(await remote.runs.list({ paused: true })).toEqual({ runs: [], cursor: null });
  });
});
