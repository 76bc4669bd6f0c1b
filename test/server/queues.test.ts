import { type IncomingMessage, request } from "node:http";
import { once } from "node:events";
import { connect, type Message } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";

const database = await testDatabase();
const { server, url, call } = await testServer({ database: database.url });
const pawl = connect(url);
afterAll(() => pawl.close());

const received = async (queue: string, body?: object): Promise<Message[]> =>
  ((await call("POST", `/v1/queues/${queue}/receive`, body)).body as { messages: Message[] }).messages;

describe("the REST of queues", () => {
  it("sends, receives, changes visibility and acknowledges by plain requests", async () => {
    const sent = await call("POST", "/v1/queues/plain/messages", {
      body: { n: 1 },
      group: "g",
      delaySeconds: 0,
    });
    expect(sent).toMatchObject({ status: 201, body: { messages: [{ created: true }] } });
    const [message] = await received("plain");
    expect(message).toMatchObject({ body: { n: 1 }, group: "g", receives: 1, from: null });
    const path = `/v1/queues/plain/messages/${message!.id}?receipt=${message!.receipt}`;
    expect(await call("PATCH", path, { visibilitySeconds: 60 })).toMatchObject({ body: { extended: true } });
    expect(await call("GET", "/v1/queues/plain")).toMatchObject({ body: { queue: "plain", inFlight: 1 } });
    expect(await call("DELETE", path)).toMatchObject({ status: 200, body: { acked: true } });
    expect(await call("DELETE", path)).toMatchObject({ status: 404, body: { code: "RunNotFound" } });
    expect(await call("PATCH", path, { visibilitySeconds: 0 })).toMatchObject({ status: 404 });
  });

  it("takes a list of messages, all or none", async () => {
    const list = [{ body: 1 }, { body: 2, dedupKey: "" }];
    expect(await call("POST", "/v1/queues/lists/messages", list)).toMatchObject({ status: 422 });
    expect(await received("lists")).toEqual([]);
    await call("POST", "/v1/queues/lists/messages", [{ body: 1 }, { body: 2 }]);
    expect((await received("lists", { max: 1 })).map(({ body }) => body)).toEqual([1]);
  });

  it.each([
    ["an unknown member", { body: 1, prio: 2 }],
    ["no body", { group: "g" }],
    ["a delay that is none", { body: 1, delaySeconds: "5" }],
    ["a negative delay", { body: 1, delaySeconds: -1 }],
    ["a key that is too long", { body: 1, dedupKey: "x".repeat(513) }],
    ["a text", "hello"],
  ])("refuses %s and sends nothing", async (_, body) => {
    const answer = await call("POST", "/v1/queues/strict/messages", body);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(await received("strict")).toEqual([]);
  });

  it.each([
    ["a wait of more than 30 s", { waitSeconds: 31 }],
    ["no visibility", { visibilitySeconds: 0 }],
    ["101 messages", { max: 101 }],
    ["an unknown member", { wait: 1 }],
  ])("refuses to receive with %s", async (_, body) => {
    const answer = await call("POST", "/v1/queues/strict/receive", body);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
  });

  it("a queue whose name is none is refused", async () => {
    expect(await call("POST", "/v1/queues/No%20Name/messages", { body: 1 })).toMatchObject({
      status: 422,
      body: { code: "InvalidOption" },
    });
  });
});

describe("a receiver whose connection is gone", () => {
  /** Asks, and hangs up once the server has the request; resolves when the server knows. */
  const abandon = async (queue: string, body: object): Promise<void> => {
    const asked = once(server.app.server, "request") as Promise<[IncomingMessage]>;
    const waiting = request(`${url}/v1/queues/${queue}/receive`, {
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    waiting.on("error", () => {});
    waiting.end(JSON.stringify(body));
    const [seen] = await asked;
    const gone = once(seen.socket, "close");
    waiting.destroy();
    await gone;
  };

  it("is not given messages that come later", async () => {
    for (let n = 0; n < 20; n++) await abandon("gone", { waitSeconds: 30 });
    await pawl.queues.send("gone", "for the living");
    const [message] = await pawl.queues.receive("gone", { wait: "20s" });
    expect(message).toMatchObject({ body: "for the living", receives: 1 });
  });

  it("gives back what was on its way", async () => {
    await pawl.queues.sendMany("fleeing", [{ body: 1 }, { body: 2 }]);
    const client = await database.connect();
    await client.query("begin");
    await client.query("lock table runs in access exclusive mode");
    await abandon("fleeing", { visibilitySeconds: 3600 });
    await client.query("commit");
    const messages = await pawl.queues.receive("fleeing", { wait: "20s" });
    expect(messages).toMatchObject([{ receives: 1 }, { receives: 1 }]);
  });
});

it("a server that closes answers who waits at once", async () => {
  const other = await testServer({ database: database.url });
  const asked = once(other.server.app.server, "request");
  const waiting = other.call("POST", "/v1/queues/closing/receive", { waitSeconds: 30 });
  await asked;
  await other.server.close();
  expect(await waiting).toMatchObject({ status: 200, body: { messages: [] } });
});
