import { createServer } from "node:net";
import { job, machine, NonRetryable, serve as plainServe, signal, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { readExposition } from "../../support/http/exposition.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });

describe("the metrics of a worker", () => {
  it("can be read before it is ready", async () => {
    const early = job({ name: "early", run: () => null });
    const worker = plainServe([early], { url: database.url });
    expect(await worker.metrics()).toContain('workflow_runs_in_flight{workflow="early"} 0');
    await worker.stop();
  });

  it("count starts, ends, steps, retries and signals by definition", async () => {
    const flaky = job({
      name: "flaky",
      backoff: () => 1,
      run: (ctx) => {
        if (ctx.attempt === 0) throw new Error("not yet");
        return null;
      },
    });
    const broken = job({
      name: "broken",
      run: () => {
        throw new NonRetryable("never");
      },
    });
    const waiting = machine({
      name: "waiting",
      state: type<object>(),
      signals: { go: signal() },
      steps: { start: (ctx) => ctx.awaitSignal("go", "end", {}), end: (ctx) => ctx.done() },
    });
    const worker = await serve([flaky, broken, waiting]);
    const one = await pawl.start(flaky, null);
    const two = await pawl.start(broken, null);
    const three = await pawl.start(waiting, {});
    const four = await pawl.start(waiting, {});
    await pawl.signal(three.runId, "go");
    await pawl.runs.cancel(four.runId);
    await pawl.result(one.runId);
    await pawl.result(two.runId).catch(() => {});
    await pawl.result(three.runId);
    const { series, types } = readExposition(await worker.metrics());
    expect(types.get("workflow_run_duration_seconds")).toBe("histogram");
    expect(
      Object.fromEntries([...series].filter(([of]) => /^workflow_(?!.*_(bucket|sum))/.test(of))),
    ).toEqual({
      'workflow_runs_started_total{workflow="flaky"}': 1,
      'workflow_runs_started_total{workflow="broken"}': 1,
      'workflow_runs_started_total{workflow="waiting"}': 2,
      'workflow_runs_completed_total{workflow="flaky",status="completed"}': 1,
      'workflow_runs_completed_total{workflow="broken",status="failed"}': 1,
      'workflow_runs_completed_total{workflow="waiting",status="completed"}': 1,
      'workflow_runs_completed_total{workflow="waiting",status="cancelled"}': 1,
      'workflow_runs_in_flight{workflow="flaky"}': expect.any(Number) as number,
      'workflow_runs_in_flight{workflow="broken"}': expect.any(Number) as number,
      'workflow_runs_in_flight{workflow="waiting"}': expect.any(Number) as number,
      'workflow_run_duration_seconds_count{workflow="flaky"}': 1,
      'workflow_run_duration_seconds_count{workflow="broken"}': 1,
      'workflow_run_duration_seconds_count{workflow="waiting"}': 1,
      'workflow_step_duration_seconds_count{workflow="flaky",step="run"}': 2,
      'workflow_step_duration_seconds_count{workflow="broken",step="run"}': 1,
      'workflow_step_duration_seconds_count{workflow="waiting",step="start"}': expect.any(Number) as number,
      'workflow_step_duration_seconds_count{workflow="waiting",step="end"}': 1,
      'workflow_step_retries_total{workflow="flaky",step="run"}': 1,
      'workflow_signals_total{workflow="waiting",event="go"}': 1,
      workflow_retention_swept_total: 0,
    });
    expect(series.get('workflow_step_duration_seconds_bucket{workflow="flaky",step="run",le="+Inf"}')).toBe(
      2,
    );
    expect(series.get('pawl_flush_batch_size_count{what="commit"}')).toBeGreaterThan(0);
    expect([...types.keys()].filter((name) => !/^(workflow|pawl)_/.test(name))).toEqual([]);
    await worker.stop();
  });

  it("show what is in flight while it is, and nothing afterwards", async () => {
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const held = job({ name: "held", run: () => gate });
    const worker = await serve([held]);
    const inFlight = async (): Promise<number | undefined> =>
      readExposition(await worker.metrics()).series.get('workflow_runs_in_flight{workflow="held"}');
    const { runId } = await pawl.start(held, null);
    await until("it is executed", async () => (await inFlight()) === 1);
    release();
    await pawl.result(runId);
    await until("it has ended", async () => (await inFlight()) === 0);
    await worker.stop();
  });

  it("have a bounded number of series, however many names users make up", async () => {
    const crowd = workflow({
      name: "crowd",
      run: async (ctx) => {
        for (let index = 0; index < 250; index++) await ctx.step.run(`step-${index}`, () => index);
      },
    });
    const worker = await serve([crowd]);
    const { runId } = await pawl.start(crowd, null);
    for (let index = 0; index < 300; index++) {
      await pawl.start(`nobody-${index}`, null, { delay: "1h" });
    }
    await pawl.result(runId);
    const { series } = readExposition(await worker.metrics());
    const of = (name: string): string[] => [...series.keys()].filter((key) => key.startsWith(`${name}{`));
    const steps = of("workflow_step_duration_seconds_count");
    expect(steps).toHaveLength(101);
    expect(series.get('workflow_step_duration_seconds_count{workflow="crowd",step="other"}')).toBe(150);
    const started = of("workflow_runs_started_total");
    expect(started).toHaveLength(201);
    expect(started.reduce((sum, key) => sum + series.get(key)!, 0)).toBe(301);
    await worker.stop();
  });

  it("are served on a port of their own, with what the database knows if that is asked for", async () => {
    const port = await freePort();
    const later = job({ name: "later", queue: "elsewhere", run: () => null });
    await pawl.startMany(later, [{ input: 1 }, { input: 2 }]);
    const idle = job({ name: "idle", run: () => null });
    const worker = await serve([idle], { metrics: { port, database: true } });
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const { series } = readExposition(await answer.text());
    expect(series.get('pawl_queue_depth{queue="elsewhere"}')).toBe(2);
    expect(series.get('pawl_queue_age_seconds{queue="elsewhere"}')).toBeGreaterThan(0);
    expect(series.get("pawl_workers")).toBeGreaterThanOrEqual(1);
    expect(series.get('pawl_event_loop_lag_seconds{quantile="0.99"}')).toBeGreaterThanOrEqual(0);
    expect((await fetch(`http://127.0.0.1:${port}/other`)).status).toBe(404);
    await worker.stop();
    await expect(fetch(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow();
  });

  it("refuse a port that is taken, and options that are none", async () => {
    const idle = job({ name: "idle", run: () => null });
    const taken = createServer();
    const port = await new Promise<number>((resolve) => {
      taken.listen(0, "127.0.0.1", () => resolve((taken.address() as { port: number }).port));
    });
    const worker = plainServe([idle], { url: database.url, metrics: { port } });
    await expect(worker.ready).rejects.toThrow("EADDRINUSE");
    taken.close();
    expect(() => plainServe([idle], { metrics: { prot: 1 } as object })).toThrow('did you mean "port"');
    expect(() => plainServe([idle], { metrics: { port: 70_000 } })).toThrow("metrics.port");
    expect(() => plainServe([idle], { metrics: "yes" as never })).toThrow("the option metrics");
  });

  it("are not counted if that is switched off, and say so", async () => {
    const idle = job({ name: "idle", run: () => null });
    const worker = await serve([idle], { metrics: false });
    await expect(worker.metrics()).rejects.toThrow("metrics: false");
    await worker.stop();
  });
});
