import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { context, propagation, trace } from "@opentelemetry/api";
import { sendTraces } from "@pawl/server";
import { job, machine, child, NonRetryable, signal, type, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { collectTraces, type Span } from "../support/http/collector.js";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { testServer } from "../support/server.js";
import { requireBuild } from "../support/built.js";
import { until } from "../support/until.js";
import { journey } from "./definitions.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const collector = await collectTraces();
const program = fileURLToPath(new URL("../dist/traces/worker.js", import.meta.url));
const tracer = trace.getTracer("test");

beforeAll(() => {
  process.env["OTEL_BSP_SCHEDULE_DELAY"] = "20";
  process.env["OTEL_SERVICE_NAME"] = "the test";
  const traces = sendTraces({ endpoint: collector.url });
  return () => traces.close();
});

const children = new Set<ChildProcess>();
afterAll(() => {
  for (const one of children) one.kill("SIGKILL");
});

/** Starts a worker process and waits for this message of it. */
async function startWorker(service: string, message: string, env: object = {}): Promise<ChildProcess> {
  requireBuild();
  const worker = fork(program, {
    env: {
      ...process.env,
      DATABASE_URL: database.url,
      PAWL_URL: "",
      OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: service,
      OTEL_BSP_SCHEDULE_DELAY: "20",
      ...env,
    },
  });
  children.add(worker);
  await new Promise<void>((resolve) =>
    worker.on("message", (got) => {
      if (got === message) resolve();
    }),
  );
  return worker;
}

const ofRun = (runId: string): Span[] =>
  collector.spans.filter(({ attributes }) => attributes["run_id"] === runId);
const ended = (runId: string): Promise<Span> =>
  until("its end was sent", () =>
    ofRun(runId).find(
      ({ name, attributes }) => name === "workflow.run" && attributes["status"] !== "running",
    ),
  );

describe("the spans of a run", () => {
  it("are one trace, below the caller's span, when the run moves to another process after a kill", async () => {
    const hanging = startWorker("first process", "hanging", { HANG: "1" });
    const { runId, caller } = await tracer.startActiveSpan("caller", async (span) => {
      const started = await pawl.start(journey, null);
      span.end();
      return { runId: started.runId, caller: span.spanContext() };
    });
    const first = await hanging;
    await until("the first step was sent", () =>
      ofRun(runId).some(({ attributes }) => attributes["step.name"] === "first"),
    );
    first.kill("SIGKILL");
    await startWorker("second process", "ready");
    await until(
      "it waits for the event",
      async () => (await pawl.runs.get(runId)).phase === "awaiting_signal",
    );
    await pawl.signal(runId, "go");
    expect(await pawl.result(runId)).toBe("there");
    await ended(runId);
    await until("its last step was sent", () =>
      ofRun(runId).some(({ attributes }) => attributes["step.name"] === "call"),
    );

    const spans = ofRun(runId);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([caller.traceId]));
    const steps = spans.filter(({ name }) => name === "workflow.step");
    expect(
      steps.map(({ service, attributes }) => [service, attributes["step.name"], attributes["step.kind"]]),
    ).toEqual(
      expect.arrayContaining([
        ["first process", "first", "run"],
        ["second process", "second", "run"],
        ["second process", "rest", "sleep"],
        ["second process", "go", "wait"],
        ["second process", "call", "invoke"],
      ]),
    );
    expect(steps.filter(({ attributes }) => attributes["step.name"] === "first")).toHaveLength(1);
    expect(steps[0]!.attributes).toEqual({
      "workflow.name": "journey",
      run_id: runId,
      "step.name": "first",
      "step.kind": "run",
      "step.attempt": 0,
    });

    // Each stretch is a child of the caller's span, has the steps below it, and the waits are the gaps between them.
    const stretches = spans
      .filter(({ name }) => name === "workflow.run")
      .toSorted((one, other) => one.startMs - other.startMs);
    expect(stretches.length).toBeGreaterThanOrEqual(3);
    for (const { parentSpanId } of stretches) expect(parentSpanId).toBe(caller.spanId);
    expect(stretches.at(-1)!.attributes).toEqual({
      "workflow.name": "journey",
      "workflow.version": 1,
      run_id: runId,
      status: "completed",
    });
    for (const [index, { endMs }] of stretches.slice(0, -1).entries()) {
      expect(stretches[index + 1]!.startMs).toBeGreaterThanOrEqual(endMs);
    }
    const second = steps.find(({ attributes }) => attributes["step.name"] === "second")!;
    expect(stretches.map(({ spanId }) => spanId)).toContain(second.parentSpanId);
    const slept = stretches.filter(({ startMs }) => startMs >= second.endMs);
    expect(slept[0]!.startMs - second.endMs).toBeGreaterThanOrEqual(250);

    // The invoked run is part of it too.
    const [invoked] = (await pawl.runs.list({ name: "leaf" })).runs;
    const leafRun = await until("the leaf was sent", () =>
      ofRun(invoked!.runId).find(({ name }) => name === "workflow.run"),
    );
    expect(leafRun.traceId).toBe(caller.traceId);
  });

  it("are a trace of their own without a caller's span: also of runs that were started by SQL", async () => {
    const twice = workflow({
      name: "twice",
      run: async (ctx) => {
        await ctx.step.run("one", () => 1);
        await ctx.step.waitForEvent("go");
        return 1;
      },
    });
    await serve([twice]);
    const [{ id }] = (await database.sql<{ id: string }>(
      "select start('twice', null, version => 1)::text as id",
    )) as [{ id: string }];
    const { runId } = await pawl.start(twice, null);
    for (const each of [id, runId]) {
      await until("it waits", async () => (await pawl.runs.get(each)).phase === "awaiting_signal");
      await pawl.signal(each, "go");
      await pawl.result(each as never);
      await ended(each);
    }
    const traces = [id, runId].map((each) => {
      const stretches = ofRun(each).filter(({ name }) => name === "workflow.run");
      expect(stretches).toHaveLength(2);
      return new Set(stretches.map(({ traceId }) => traceId));
    });
    expect(traces.map(({ size }) => size)).toEqual([1, 1]);
    expect(traces[0]).not.toEqual(traces[1]);
    const start = collector.spans.find(
      ({ name, traceId }) => name === "workflow.start" && traces[1]!.has(traceId),
    );
    expect(start?.parentSpanId).toBeNull();
  });

  it("of signals belong to who sends, and link to the run", async () => {
    const waiting = machine({
      name: "waiting",
      state: type<object>(),
      signals: { go: signal<{ n: number }>() },
      steps: { start: (ctx) => ctx.awaitSignal("go", "end", {}), end: (ctx) => ctx.done() },
    });
    await serve([waiting]);
    const { runId } = await pawl.start(waiting, {});
    const sender = await tracer.startActiveSpan("sender", async (span) => {
      await pawl.signal(runId, "go", { n: 1 });
      span.end();
      return span.spanContext();
    });
    const { traceId } = await ended(runId);
    const span = await until("the signal was sent", () =>
      ofRun(runId).find(({ name }) => name === "workflow.signal"),
    );
    expect(span).toMatchObject({ traceId: sender.traceId, parentSpanId: sender.spanId, links: [traceId] });
    expect(span.attributes).toEqual({ "workflow.name": "waiting", run_id: runId, event: "go" });
  });

  it("tell failures by their code alone, and every attempt by its number", async () => {
    const failing = job({
      name: "failing",
      backoff: () => 1,
      run: (ctx) => {
        if (ctx.attempt === 0) throw new Error("a secret message");
        throw new NonRetryable("another secret");
      },
    });
    const parent = machine({
      name: "parent",
      state: type<object>(),
      steps: { start: (ctx) => ctx.spawn("end", [child(failing, null)], {}), end: (ctx) => ctx.done() },
    });
    await serve([failing, parent]);
    const { runId } = await pawl.start(parent, {});
    await pawl.result(runId);
    const { traceId } = await ended(runId);
    const [failed] = (await pawl.runs.list({ name: "failing" })).runs;
    expect(await ended(failed!.runId)).toMatchObject({
      traceId,
      isError: true,
      statusMessage: "NonRetryable",
      attributes: { status: "failed" },
    });
    const attempts = ofRun(failed!.runId).filter(({ name }) => name === "workflow.step");
    expect(attempts.map(({ attributes, isError }) => [attributes["step.attempt"], isError])).toEqual([
      [0, true],
      [1, true],
    ]);
    expect(collector.text()).not.toContain("secret");
  });

  it("end also when nothing of a step is recorded: its worker stops, or its claim is lost", async () => {
    let begun = 0;
    let fail: (error: Error) => void = () => {};
    const stopped = workflow({
      name: "stopped",
      run: ({ step }) =>
        step.run("one", ({ signal: aborted }) => {
          begun++;
          return new Promise((_, reject) => {
            fail = reject;
            aborted.addEventListener("abort", () => reject(new Error("stopped")));
          });
        }),
    });
    const dropped = (runId: string, count: number): Promise<Span[]> =>
      until("the spans were sent", () => {
        const found = ofRun(runId).filter(({ name }) => name === "workflow.step");
        return found.length === count ? found : null;
      });
    const worker = await serve([stopped], { drainTimeout: 0 });
    const { runId } = await pawl.start(stopped);
    await until("it has begun", () => begun === 1);
    await worker.stop();
    expect(await dropped(runId, 1)).toMatchObject([{ isError: true, statusMessage: "dropped" }]);

    await serve([stopped]);
    await until("it has begun again", () => begun === 2);
    await database.sql("update runs set claim_id = 5 where id = $1", [runId]);
    fail(new Error("too late"));
    expect((await dropped(runId, 2))[1]).toMatchObject({ isError: true, statusMessage: "dropped" });
    await pawl.runs.cancel(runId);
  });

  it("run user code inside of them: what it traces is below its step", async () => {
    const nested = job({
      name: "nested",
      run: async () => {
        await new Promise((resolve) => setImmediate(resolve));
        tracer.startSpan("inner").end();
        return null;
      },
    });
    await serve([nested]);
    const { runId } = await pawl.start(nested, null);
    await pawl.result(runId);
    await ended(runId);
    const inner = await until("the inner span was sent", () =>
      collector.spans.find(({ name }) => name === "inner"),
    );
    const step = ofRun(runId).find(({ name }) => name === "workflow.step")!;
    expect(inner.parentSpanId).toBe(step.spanId);
  });

  it("are of the trace that a caller over REST names, in its header or for each run", async () => {
    const quick = job({ name: "quick", run: () => null });
    await serve([quick]);
    const { call } = await testServer({ database: database.url });
    const parent = tracer.startSpan("over REST");
    const headers: Record<string, string> = {};
    propagation.inject(trace.setSpan(context.active(), parent), headers);
    parent.end();
    const { body } = await call("POST", "/v1/workflows/quick/runs", {}, headers);
    const { runId } = body as { runId: string };
    expect((await ended(runId)).traceId).toBe(parent.spanContext().traceId);
    const traceparent = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`;
    const batch = await call("POST", "/v1/runs/batch", { runs: [{ name: "quick", traceparent }] }, headers);
    const [{ runId: other }] = (batch.body as { runs: [{ runId: string }] }).runs;
    expect((await ended(other)).traceId).toBe("ab".repeat(16));
    const wrong = await call("POST", "/v1/workflows/quick/runs", { traceparent: "no" });
    expect(wrong.status).toBe(422);
  });
});
