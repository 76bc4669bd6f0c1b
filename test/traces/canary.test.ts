import { connect, child, job, machine, serve as plainServe, signal, type, workflow } from "pawl";
import { sendTraces } from "@pawl/server";
import { inspect } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { collectTraces } from "../support/http/collector.js";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

/** What must never be seen: whatever of it appears in a log, a metric or a span is a leak. */
const canary = "canary-7f3a";
const secret = (of: string): string => `${canary}-${of}`;

const database = await testDatabase();
const logged: string[] = [];
const log = (...given: unknown[]): void =>
  void logged.push(given.map((one) => inspect(one, { depth: 8, showHidden: true })).join(" "));
const logger = { debug: log, info: log, warn: log, error: log };
const { pawl, serve } = testEngine(database);
const collector = await collectTraces();
const token = `client:read+write+worker+admin:${secret("token-long-enough")}`;
const server = await testServer({ database: database.url, tokens: [token], logger });

beforeAll(() => {
  process.env["OTEL_BSP_SCHEDULE_DELAY"] = "20";
  const traces = sendTraces({ endpoint: collector.url });
  return () => traces.close();
});

describe("what users pass in", () => {
  it("is in no log, no metric and no span", async () => {
    const leaf = job({ name: "leaf", run: () => ({ result: secret("result of a child") }) });
    const waiting = machine({
      name: "waiting",
      state: type<{ key: string }>(),
      signals: { go: signal<{ key: string }>() },
      steps: {
        start: (ctx) => ctx.next("wait", { key: secret("state") }),
        wait: (ctx) => ctx.awaitSignal("go", "fan", ctx.state),
        fan: (ctx) => ctx.spawn("end", [child(leaf, { key: secret("input of a child") })], ctx.state),
        end: (ctx) => ctx.done({ key: secret("result") }),
      },
      handle: (error, ctx) => ctx.stop(error),
    });
    const flow = workflow({
      name: "flow",
      run: async (ctx) => {
        ctx.log.info({ at: "begin" }, "the body");
        await ctx.step.run("make", () => ({ key: secret("result of a step") }));
        await ctx.step.run("flaky", (step) => {
          if (step.attempt === 0) throw new Error("a plain error");
          return secret("result of a retry");
        });
        const event = await ctx.step.waitForEvent("go", { match: { key: secret("payload") } });
        return event;
      },
    });
    const parsed = job({
      name: "parsed",
      // Refuses its input, with what it got in the message: Pawl's own error quotes it.
      input: {
        "~standard": {
          version: 1 as const,
          vendor: "test",
          validate: (value: unknown) =>
            typeof value === "number"
              ? { issues: [{ message: `not ${secret("quoted input")}` }] }
              : { value: 1 },
        },
      },
      run: () => null,
    });
    const worker = await serve([leaf, waiting, flow, parsed], { logger });
    const { runId } = await pawl.start(
      waiting,
      { key: secret("input") },
      {
        idempotencyKey: secret("idempotency"),
        partitionKey: secret("partition"),
        uniqueKey: secret("unique"),
      },
    );
    await pawl.signal(runId, "go", { key: secret("payload") }, { dedupKey: secret("dedup") });
    await pawl.result(runId);
    const other = await pawl.start(flow, { key: secret("input of a workflow") });
    await pawl.signal(other.runId, "go", { key: secret("payload") });
    await pawl.result(other.runId);
    const broken = await pawl.start("parsed", 7, { version: 1 }).catch(() => pawl.start("parsed", 7));
    await pawl.result(broken.runId).catch(() => {});

    const remote = connect(server.url, { token: secret("token-long-enough"), logger });
    await remote.start("leaf", { key: secret("input over REST") });
    await remote.runs.list({ input: { key: secret("filter") } });
    await remote.close();
    await server.call("GET", "/v1/runs?cursor=" + secret("cursor"), undefined, {
      authorization: `Bearer ${secret("token-long-enough")}`,
    });
    await server.call("GET", "/v1/runs", undefined, { authorization: `Bearer ${secret("wrong token")}` });

    const nowhere = plainServe([leaf], {
      url: `postgres://someone:${secret("password")}@127.0.0.1:1/none`,
      logger,
    });
    await until("it cannot be reached", () => logged.some((line) => line.includes("cannot reach its runs")));
    await nowhere.stop();

    const metrics =
      (await worker.metrics()) +
      (await (
        await fetch(`${server.url}/metrics`, {
          headers: { authorization: `Bearer ${secret("token-long-enough")}` },
        })
      ).text());
    await until("the spans were sent", () =>
      collector.spans.some(
        ({ attributes }) => attributes["run_id"] === other.runId && attributes["status"] === "completed",
      ),
    );
    await worker.stop();

    // It was there to be seen, and all three have something to say.
    expect(JSON.stringify(await pawl.runs.get(runId))).toContain(canary);
    expect(logged.length).toBeGreaterThan(2);
    expect(metrics).toContain('workflow="waiting"');
    expect(logged.filter((line) => line.includes(canary))).toEqual([]);
    expect(metrics).not.toContain(canary);
    expect(collector.text()).not.toContain(canary);
  });
});

describe("ctx.log", () => {
  it("says which run, step and attempt a line is of", async () => {
    const lines: object[] = [];
    const keep = (details: object): void => void lines.push(details);
    const stepping = machine({
      name: "stepping",
      state: type<object>(),
      steps: {
        start: (ctx) => {
          ctx.log.info({ n: 1 }, "a line");
          return ctx.attempt === 0 ? ctx.retry({}, 0) : ctx.done();
        },
      },
    });
    const worker = await serve([stepping], { logger: { ...logger, info: keep as never } });
    const { runId } = await pawl.start(stepping, {});
    await pawl.result(runId);
    expect(lines).toEqual(
      [0, 1].map((attempt) => ({ runId, name: "stepping", step: "start", attempt, n: 1 })),
    );
    await worker.stop();
  });
});
