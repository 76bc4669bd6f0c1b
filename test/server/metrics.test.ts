import { connect, job, machine, serve, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent, testEngine } from "../support/engine.js";
import { readExposition } from "../support/http/exposition.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { pawl } = testEngine(database);
const token = "reader:read:correct-horse-battery-staple";
const { url } = await testServer({
  database: database.url,
  tokens: [token, "worker:worker:another-long-enough-one"],
});
const open = await testServer({ database: database.url, metricsOpen: true, tokens: [token] });

const read = async (from: string, secret?: string): Promise<Response> =>
  fetch(`${from}/metrics`, secret === undefined ? {} : { headers: { authorization: `Bearer ${secret}` } });

describe("/metrics", () => {
  it("takes a token with the scope read, unless it is open", async () => {
    expect((await read(url)).status).toBe(401);
    expect((await read(url, "another-long-enough-one")).status).toBe(403);
    const answer = await read(url, "correct-horse-battery-staple");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect((await read(open.url)).status).toBe(200);
  });

  it("counts what the server has started, and asks the database about its queues, at most every ten seconds", async () => {
    const server = await testServer({ database: database.url });
    const started = await server.call("POST", "/v1/workflows/report/runs", {
      input: 1,
      version: 1,
      queue: "reports",
    });
    expect(started.status).toBe(201);
    const first = readExposition(await (await read(server.url)).text());
    expect(first.series.get('workflow_runs_started_total{workflow="report"}')).toBe(1);
    expect(
      first.series.get('pawl_queue_depth{queue="reports"}') ??
        first.series.get('pawl_unserved_runs{workflow="report",version="1"}'),
    ).toBe(1);
    await pawl.startMany(job({ name: "other", queue: "others", run: () => null }), [{ input: 1 }]);
    const second = readExposition(await (await read(server.url)).text());
    expect(second.series.has('pawl_queue_depth{queue="others"}')).toBe(false);
    expect(second.series.get('workflow_runs_started_total{workflow="other"}')).toBe(1);
  });

  it("counts what clients do through the server, and what limits put off for the workers behind it", async () => {
    const server = await testServer({ database: database.url });
    const client = connect(server.url);
    const patient = machine({
      name: "patient",
      state: type<object>(),
      steps: { start: (ctx) => ctx.awaitSignal("go", "end", {}), end: (ctx) => ctx.done() },
    });
    const limited = job({ name: "limited", queue: "limited", run: () => null });
    const worker = serve([patient, limited], {
      url: server.url,
      logger: silent,
      limits: { slow: { allowed: 1, period: "1h", burst: 1 } },
    });
    await worker.ready;
    const [one, two] = await client.startMany(patient, [{ input: {} }, { input: {} }]);
    await client.signal(one!.runId, "go");
    await client.runs.cancel(two!.runId);
    await client.result(one!.runId);
    const starts = [1, 2, 3].map(() => ({ input: null, rateLimit: "slow" }));
    await client.startMany(limited, starts);
    const { series } = await until("two are put off", async () => {
      const told = readExposition(await (await read(server.url)).text());
      return told.series.get('pawl_throttled_total{queue="limited"}') === 2 ? told : null;
    });
    expect(series.get('workflow_runs_started_total{workflow="patient"}')).toBe(2);
    expect(series.get('workflow_signals_total{workflow="patient",event="go"}')).toBe(1);
    expect(series.get('workflow_runs_completed_total{workflow="patient",status="cancelled"}')).toBe(1);
    await worker.stop();
    await client.close();
  });
});
