/** Tokens with prefixes of names and queues, and the scope `start`. */

import { connect, job, serve } from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";

const { url } = await testDatabase();
const secrets = {
  both: "both-secret-0123456789",
  names: "names-secret-0123456789",
  queues: "queues-secret-0123456789",
  start: "start-secret-0123456789",
  lead: "lead-secret-0123456789",
  all: "admin-secret-0123456789",
};
type Who = keyof typeof secrets;
const { call, url: address } = await testServer({
  database: url,
  tokens: [
    `both:write:names=billing-+invoice-:queues=billing:${secrets.both}`,
    `names:write:names=billing-:${secrets.names}`,
    `queues:write:queues=billing:${secrets.queues}`,
    `start:start:names=billing-:${secrets.start}`,
    `lead:admin:names=billing-:${secrets.lead}`,
    `all:admin:${secrets.all}`,
  ],
});
const as = (who: Who, method: string, path: string, body?: unknown) =>
  call(method, path, body, { authorization: `Bearer ${secrets[who]}` });
const pawl = connect(url);
afterAll(() => pawl.close());

const own = { name: "billing-charge", runId: "" };
const foreign = { name: "shipping-send", runId: "" };
beforeAll(async () => {
  own.runId = (await pawl.start(own.name, { of: "billing" }, { queue: "billing" })).runId;
  foreign.runId = (await pawl.start(foreign.name, { of: "shipping" }, { queue: "shipping" })).runId;
  await pawl.queues.send("billing-events", { of: "billing" });
  await pawl.queues.send("shipping-events", { of: "shipping" });
  await pawl.limits.set("billing-bank", { allowed: 1, period: "1s" });
  await pawl.limits.set("shipping-carrier", { allowed: 1, period: "1s" });
});

describe("a token with prefixes", () => {
  it("starts runs of its names in its queues, and no others", async () => {
    const start = async (who: Who, name: string, queue?: string) =>
      (await as(who, "POST", `/v1/workflows/${name}/runs`, { queue })).status;
    expect(await start("both", "billing-a", "billing-fast")).toBe(201);
    expect(await start("both", "invoice-a", "billing")).toBe(201);
    expect(await start("both", "billing-a", "shipping")).toBe(403);
    expect(await start("both", "shipping-a", "billing")).toBe(403);
    // It would run in the queue of the definition, whatever that is.
    expect(await start("both", "billing-a")).toBe(403);
    expect(await start("names", "billing-a")).toBe(201);
    expect(await start("names", "billing")).toBe(403);
    expect(await start("queues", "anything", "billing")).toBe(201);
    expect(await start("queues", "anything")).toBe(403);
  });

  it("is told of a similar name only if that is one of its own", async () => {
    const definitions = ["billing-known", "billink-only"].map((name) => job({ name, run: () => null }));
    const worker = serve(definitions, { url });
    await worker.ready;
    const start = async (who: Who, name: string) =>
      (await as(who, "POST", `/v1/workflows/${name}/runs`, { queue: "billing" })).body;
    expect(await start("names", "billing-konwn")).toMatchObject({ served: false, nearest: "billing-known" });
    expect(await start("names", "billing-known")).not.toHaveProperty("served");
    expect(await start("all", "billing-only")).toMatchObject({ served: false, nearest: "billink-only" });
    const hidden = await start("names", "billing-only");
    expect(hidden).toMatchObject({ served: false });
    expect(hidden).not.toHaveProperty("nearest");
    const batch = await as("names", "POST", "/v1/runs/batch", { runs: [{ name: "billing-only" }] });
    expect(batch.body).toEqual({
      runs: [{ runId: expect.any(String) as string, created: true, status: "running", served: false }],
    });
    await worker.stop();
  });

  it("reaches the schedules that start runs of its names in its queues, and no others", async () => {
    const body = (start: string, queue = "billing") => ({ every: "1d", start, options: { queue } });
    const put = async (who: Who, name: string, given: object) =>
      (await as(who, "PUT", `/v1/schedules/${name}`, given)).status;
    expect(await put("all", "theirs", body("shipping-send", "shipping"))).toBe(200);
    expect(await put("both", "ours", body("billing-charge"))).toBe(200);
    expect(await put("both", "other", body("shipping-send"))).toBe(403);
    expect(await put("both", "other", body("billing-charge", "shipping"))).toBe(403);
    expect(await put("both", "other", { every: "1d", start: "billing-charge" })).toBe(403);
    // It takes no schedule of others over.
    expect(await put("both", "theirs", body("billing-charge"))).toBe(403);
    const listed = await as("both", "GET", "/v1/schedules");
    expect(listed.body).toMatchObject({ schedules: [{ name: "ours" }], cursor: null });
    for (const [method, path, given] of [
      ["GET", ""],
      ["POST", "/pause"],
      ["POST", "/resume"],
      ["POST", "/trigger"],
      ["POST", "/backfill", { from: "2020-01-01", to: "2020-01-02" }],
    ] as const) {
      expect((await as("both", method, `/v1/schedules/theirs${path}`, given)).status).toBe(404);
      expect((await as("both", method, `/v1/schedules/ours${path}`, given)).status).toBeLessThan(300);
    }
    expect((await as("both", "DELETE", "/v1/schedules/theirs")).body).toEqual({ removed: false });
    expect((await as("both", "DELETE", "/v1/schedules/ours")).body).toEqual({ removed: true });
    await as("all", "DELETE", "/v1/schedules/theirs");
  });

  it("starts none of a batch that is not all its own", async () => {
    const before = await pawl.runs.count();
    const runs = [{ name: "billing-b" }, { name: "shipping-b" }];
    expect(await as("names", "POST", "/v1/runs/batch", { runs })).toMatchObject({
      status: 403,
      body: {
        code: "Forbidden",
        detail: expect.stringContaining('this call concerns the name "shipping-b"'),
      },
    });
    expect(await pawl.runs.count()).toBe(before);
    const each = await as("names", "POST", "/v1/runs/batch", { runs, atomic: false });
    expect(each.body).toMatchObject({ runs: [{ created: true }, { error: { code: "Forbidden" } }] });
  });

  it("sees, signals and cancels only its own runs: the others do not exist for it", async () => {
    for (const who of ["both", "names", "queues"] as const) {
      for (const [method, path] of [
        ["GET", ""],
        ["GET", "/steps"],
        ["GET", "/why"],
        ["POST", "/signals/paid"],
        ["DELETE", ""],
      ] as const) {
        const ask = (prefix: string) =>
          as(who, method, `${prefix}${path}`, method === "POST" ? {} : undefined);
        for (const prefix of [
          `/v1/runs/${foreign.runId}`,
          `/v1/workflows/${foreign.name}/runs/${foreign.runId}`,
        ]) {
          expect(await ask(prefix)).toMatchObject({
            status: 404,
            body: { code: "RunNotFound", detail: `there is no run ${foreign.runId}` },
          });
        }
        if (method !== "DELETE") expect((await ask(`/v1/runs/${own.runId}`)).status).toBe(200);
      }
    }
    expect((await pawl.runs.get(foreign.runId)).status).toBe("running");
  });

  it("waits only for the end of its own runs", async () => {
    const answer = await as("both", "POST", "/v1/runs/ended", { runIds: [own.runId, foreign.runId] });
    expect(answer.body).toEqual({
      runs: [{ runId: foreign.runId, status: null, output: null, error: null }],
      more: false,
    });
  });

  it("lists and counts its own runs, whatever the filters, and may not name others", async () => {
    const before = await pawl.runs.get(foreign.runId);
    const mixed = { queue: "billing", tags: { team: "both" }, correlationKey: "both" };
    await pawl.start("shipping-send", {}, mixed);
    const kept = (await pawl.start("billing-charge", {}, mixed)).runId;
    await pawl.start("billing-charge", {}, { ...mixed, queue: "shipping" });
    await pawl.runs.pause(kept);
    for (const filter of [
      "",
      "?status=running",
      "?phase=runnable",
      `?since=${before.startedAt.toISOString()}`,
      "?tag.team=both",
      "?correlationKey=both",
      "?paused=true",
      "?input.of=billing",
      "?parentId=1",
      "?error=Never",
      "?status=running&kind=job",
    ]) {
      for (const who of ["both", "names", "queues"] as const) {
        const { body } = await as(who, "GET", `/v1/runs${filter}`);
        const { runs } = body as { runs: { name: string; queue: string; runId: string }[] };
        const isOwn = (run: { name: string; queue: string }): boolean =>
          (who === "queues" || run.name.startsWith("billing") || run.name.startsWith("invoice-")) &&
          (who === "names" || run.queue.startsWith("billing"));
        expect([filter, who, runs.filter((run) => !isOwn(run))]).toEqual([filter, who, []]);
        const all = ((await as("all", "GET", `/v1/runs${filter}`)).body as { runs: typeof runs }).runs;
        const names = who === "names" ? all.filter(({ name }) => name.startsWith("billing-")) : all;
        expect([filter, who, runs.map(({ runId }) => runId)]).toEqual([
          filter,
          who,
          names.filter((run) => isOwn(run)).map(({ runId }) => runId),
        ]);
        const { body: counted } = await as(who, "GET", `/v1/runs/count${filter}`);
        expect([filter, who, counted]).toEqual([filter, who, { count: runs.length }]);
      }
    }
    await pawl.runs.resume(kept);
    const list = async (who: Who, path: string) => (await as(who, "GET", path)).status;
    for (const path of ["/v1/runs", "/v1/runs/count"]) {
      expect(await list("both", `${path}?name=billing-charge&queue=billing`)).toBe(200);
      expect(await list("both", `${path}?name=shipping-send&queue=billing`)).toBe(403);
      expect(await list("names", `${path}?name=billing-charge`)).toBe(200);
      expect(await list("names", `${path}?name=shipping-send`)).toBe(403);
      expect(await list("queues", `${path}?queue=billing`)).toBe(200);
      expect(await list("queues", `${path}?queue=shipping`)).toBe(403);
    }
    expect(await list("names", "/v1/workflows/billing-charge/runs")).toBe(200);
    expect(await list("names", "/v1/workflows/shipping-send/runs")).toBe(403);
    expect(await list("both", "/v1/workflows/billing-charge/runs")).toBe(200);
    expect(await list("both", "/v1/workflows/billing-charge/runs?queue=shipping")).toBe(403);
  });

  it("learns of the names, queues and limits that are its own", async () => {
    const members = async (who: Who, path: string, list: string, member: string) => {
      const { body } = await as(who, "GET", path);
      const found = (body as Record<string, Record<string, string>[]>)[list]!.map((one) => one[member]!);
      return new Set(found.map((name) => name.split("-")[0]));
    };
    expect(await members("names", "/v1/workflows", "workflows", "name")).toEqual(new Set(["billing"]));
    expect(await members("queues", "/v1/workflows", "workflows", "name")).toEqual(new Set());
    expect(await members("both", "/v1/queues", "queues", "queue")).toEqual(new Set(["billing"]));
    expect(await members("names", "/v1/queues", "queues", "queue")).toEqual(new Set());
    expect(await members("both", "/v1/limits", "limits", "name")).toEqual(new Set(["billing"]));
    expect(await members("all", "/v1/limits", "limits", "name")).toEqual(new Set(["billing", "shipping"]));
  });

  it("sets only limits of its names, and only with the scope admin", async () => {
    const set = async (who: Who, name: string) =>
      (await as(who, "PUT", `/v1/limits/${name}`, { allowed: 2, period: "1s" })).status;
    expect(await set("lead", "billing-bank")).toBe(200);
    expect(await set("lead", "shipping-carrier")).toBe(403);
    expect(await set("both", "billing-bank")).toBe(403);
  });

  it("uses only the messages of its queues", async () => {
    const calls = (queue: string) =>
      [
        ["GET", `/v1/queues/${queue}`, undefined],
        ["POST", `/v1/queues/${queue}/messages`, { body: 1 }],
        ["POST", `/v1/queues/${queue}/receive`, {}],
        ["POST", `/v1/queues/${queue}/ack`, { messages: [{ id: "1", receipt: "1" }] }],
        [
          "POST",
          `/v1/queues/${queue}/extend`,
          { messages: [{ id: "1", receipt: "1" }], visibilitySeconds: 1 },
        ],
        ["DELETE", `/v1/queues/${queue}/messages/1?receipt=1`, undefined],
        ["PATCH", `/v1/queues/${queue}/messages/1?receipt=1`, { visibilitySeconds: 1 }],
      ] as const;
    for (const [method, path, body] of calls("shipping-events")) {
      for (const who of ["both", "names", "queues"] as const)
        expect((await as(who, method, path, body)).status).toBe(403);
    }
    for (const [method, path, body] of calls("billing-events")) {
      expect((await as("queues", method, path, body)).status).not.toBe(403);
      // It has prefixes, and none of queues.
      expect((await as("names", method, path, body)).status).toBe(403);
    }
  });

  it("sees the metrics of its names and queues, and no others", async () => {
    const { body } = await as("all", "GET", "/metrics");
    expect(body).toContain('started_total{workflow="shipping-send"}');
    for (const who of ["both", "names", "queues"] as const) {
      const text = (await as(who, "GET", "/metrics")).body as string;
      expect(text).not.toMatch(/^[^#].*(workflow|queue|limit)="(?!billing|invoice-)/m);
      expect(text).toMatch(/^pawl_workers \d/m);
      expect(text.includes('started_total{workflow="billing-charge"}')).toBe(who !== "queues");
    }
  });

  it("cannot use what concerns everybody: topics, subscriptions", async () => {
    const target = { type: "workflow", name: "billing-charge" };
    for (const who of ["both", "names", "queues"] as const) {
      expect((await as(who, "POST", "/v1/topics/a/messages", { body: 1 })).status).toBe(403);
      expect((await as(who, "POST", "/v1/topics/a/subscriptions", target)).status).toBe(403);
      expect((await as(who, "GET", "/v1/subscriptions")).status).toBe(403);
      expect((await as(who, "GET", "/v1/openapi.json")).status).toBe(200);
    }
  });
});

describe("the scope start", () => {
  it("starts runs, and does nothing else", async () => {
    expect((await as("start", "POST", "/v1/workflows/billing-a/runs", {})).status).toBe(201);
    for (const path of [
      `/v1/runs/${own.runId}`,
      "/v1/runs?name=billing-charge",
      "/v1/workflows",
      "/v1/limits",
    ])
      expect((await as("start", "GET", path)).status).toBe(403);
    expect((await as("start", "DELETE", `/v1/runs/${own.runId}`)).status).toBe(403);
    expect((await as("start", "POST", `/v1/runs/${own.runId}/signals/paid`, {})).status).toBe(403);
  });

  it("is enough for the client of the library to start runs", async () => {
    const starter = connect(address, { token: secrets.start });
    const charge = job({ name: "billing-charged", run: () => "charged" });
    const { runId } = await starter.start(charge, null);
    await expect(starter.runs.get(runId)).rejects.toMatchObject({ code: "Forbidden" });
    const worker = serve([charge], { url });
    expect(await pawl.result(runId)).toBe("charged");
    await worker.stop();
    await starter.close();
  });
});
