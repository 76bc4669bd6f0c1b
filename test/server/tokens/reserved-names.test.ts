/** Names that begin with `pawl-` are the engine's own: in the library, over REST and in SQL. */

import { child, connect, InvalidOption, job, machine, serve, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { call, url } = await testServer({ database: database.url });
const direct = connect(database.url);
const remote = connect(url);
afterAll(() => Promise.all([direct.close(), remote.close()]));
const run = () => null;
const reserved = /must not begin with "pawl-", which is reserved for Pawl itself/;
const plain = job({ name: "plain", run });

describe("names that begin with pawl- are refused", () => {
  it.each([
    ["a job", () => job({ name: "pawl-delivery", run })],
    ["a machine", () => machine({ name: "pawl-own", steps: { start: (ctx) => ctx.done(1) } })],
    ["a workflow", () => workflow({ name: "pawl-own", run: async () => null })],
    ["the queue of a definition", () => job({ name: "own", queue: "pawl-deliveries", run })],
    ["a child", () => child("pawl-delivery", null)],
    ["a queue to serve", () => serve([plain], { url: database.url, queues: { default: 1, "pawl-own": 1 } })],
  ])("for %s", (_, define) => {
    expect(define).toThrow(InvalidOption);
    expect(define).toThrow(reserved);
  });

  for (const [how, pawl] of [
    ["directly", direct],
    ["through a server", remote],
  ] as const) {
    it.each([
      ["start", () => pawl.start("pawl-delivery", { subscription: "1", topic: "a", body: 1 })],
      ["start in a queue", () => pawl.start(plain, null, { queue: "pawl-deliveries" })],
      ["startMany", () => pawl.startMany("pawl-delivery", [{ input: 1 }])],
      ["a limit", () => pawl.limits.set("pawl-limit", { allowed: 1, period: "1s" })],
      ["send", () => pawl.queues.send("pawl-queue", 1)],
      ["receive", () => pawl.queues.receive("pawl-queue")],
      [
        "a workflow that subscribes",
        () => pawl.subscriptions.create("a", { type: "workflow", name: "pawl-x" }),
      ],
      ["a queue that subscribes", () => pawl.subscriptions.create("a", { type: "queue", queue: "pawl-x" })],
    ])(`by %s, ${how}`, async (_, ask) => {
      await expect(ask()).rejects.toThrow(InvalidOption);
      await expect(ask()).rejects.toThrow(reserved);
    });
  }

  it("by REST: starts, batches and everything that a worker sends", async () => {
    const definition = {
      name: "pawl-delivery",
      version: 1,
      kind: "job",
      queue: "default",
      priority: 0,
      retentionMs: 0,
    };
    const worker = { workerId: "w", leaseMs: 10_000, queues: ["default"], info: {} };
    const claim = { workerId: "w", claimId: "5", queue: "default", limit: 1 };
    for (const [path, body, field] of [
      ["/v1/workflows/pawl-delivery/runs", {}, undefined],
      ["/v1/runs/batch", { runs: [{ name: "pawl-delivery" }] }, undefined],
      ["/v1/workers/register", { ...worker, definitions: [definition] }, "body.definitions.0.name"],
      [
        "/v1/workers/register",
        { ...worker, definitions: [{ ...definition, name: "own", queue: "pawl-deliveries" }] },
        "body.definitions.0.queue",
      ],
      [
        "/v1/workers/register",
        { ...worker, queues: ["pawl-deliveries"], definitions: [{ ...definition, name: "own" }] },
        "body.queues.0",
      ],
      [
        "/v1/workers/claim",
        { ...claim, definitions: [{ name: "pawl-delivery", version: 1 }] },
        "body.definitions.0.name",
      ],
      [
        "/v1/workers/claim",
        { ...claim, queue: "pawl-deliveries", definitions: [{ name: "own", version: 1 }] },
        "body.queue",
      ],
    ] as const) {
      const answer = await call("POST", path, body);
      expect(answer).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
      if (field !== undefined) expect(answer.body).toMatchObject({ field });
      expect(JSON.stringify(answer.body)).toContain("pawl-");
    }
  });

  it.each([
    `select pawl.start('pawl-delivery', '1')`,
    `select pawl.start('plain', '1', queue => 'pawl-deliveries')`,
    `select pawl.send('pawl-queue', '1')`,
    `select pawl.subscribe('a', '{"type": "workflow", "name": "pawl-delivery"}', null)`,
    `select pawl.subscribe('a', '{"type": "queue", "queue": "pawl-queue"}', null)`,
  ])("by SQL: %s", async (text) => {
    await expect(database.sql(text)).rejects.toMatchObject({
      code: "PW422",
      message: expect.stringMatching(reserved),
    });
  });
});

it("the engine's own deliveries are executed, and can be looked at", async () => {
  await direct.subscriptions.create("told", { type: "http", url: "http://127.0.0.1:1/" });
  await direct.topics.publish("told", 1);
  await until("it is executed", async () => {
    const { runs } = await remote.runs.list({ name: "pawl-delivery", queue: "pawl-deliveries" });
    return runs[0]?.status === "failed";
  });
});
