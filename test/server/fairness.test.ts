/** One caller never stalls the others: what a flood of questions, waits, bodies or listings leaves for everybody else. */
import { connect as dial, type Socket } from "node:net";
import { connect } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { countingProxyTo, sentSince } from "../support/counting-proxy.js";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const proxy = await countingProxyTo(database.directUrl);
const tokens = ["one:read+write:one-secret-0123456789", "two:read+write:two-secret-0123456789"];
const { server, url, call: callOpenly } = await testServer({ database: proxy.url, tokens, logger: silent });
const pawl = connect(database.url);
afterAll(() => pawl.close());

type Caller = "one" | "two";
const as = (caller: Caller) => ({ authorization: `Bearer ${caller}-secret-0123456789` });
const call = (caller: Caller, method: string, path: string, body?: unknown) =>
  callOpenly(method, path, body, as(caller));

/** A connection on which texts are sent as they are, and what was answered. */
function open(): { socket: Socket; said: () => string; answers: (status: number) => number } {
  const socket = dial(Number(new URL(url).port), "127.0.0.1");
  afterAll(() => socket.destroy());
  let text = "";
  socket.setEncoding("latin1").on("data", (part: string) => (text += part));
  socket.on("error", () => {});
  const answers = (status: number): number => text.split(`HTTP/1.1 ${status} `).length - 1;
  return { socket, said: () => text, answers };
}

/** How many callers are connected. Keep-alive ones of this test are closed first. */
const connections = (): Promise<number> =>
  new Promise((resolve) => {
    server.app.server.closeIdleConnections();
    server.app.server.getConnections((_error, count) => resolve(count));
  });

const head = (caller: Caller, line: string, more = ""): string =>
  `${line} HTTP/1.1\r\nhost: localhost\r\nauthorization: ${as(caller).authorization}\r\n${more}\r\n`;

describe("readiness", () => {
  it("is asked of the database once, however many ask without a token and without waiting", async () => {
    const sent = sentSince(proxy);
    const { socket, answers } = open();
    socket.write("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(3_000));
    await until("all are answered", () => answers(200) === 3_000);
    // One a second, and what a new connection asks for itself.
    expect(sent().total).toBeLessThan(100);
  });
});

describe("a connection", () => {
  it("has one request under way, however many were sent; the others are answered after it, in order", async () => {
    const { runId } = await pawl.start("endless");
    const sent = sentSince(proxy);
    const { socket, said, answers } = open();
    const wait = head("one", `GET /v1/runs/${runId}?waitSeconds=30`);
    socket.write(wait.repeat(50) + head("one", "GET /v1/runs/999999"));
    await until("the first waits", () => (sent().kinds["results"] ?? 0) > 3);
    expect(sent().kinds["get"]).toBe(1);
    expect((await call("two", "GET", `/v1/runs/${runId}`)).status).toBe(200);

    await pawl.runs.cancel(runId);
    await until("all are answered", () => answers(200) === 50 && answers(404) === 1);
    expect(said().lastIndexOf("HTTP/1.1 200 ")).toBeLessThan(said().indexOf("HTTP/1.1 404 "));
  });

  it("that goes leaves nothing under way of what it had sent", async () => {
    const { runId } = await pawl.start("endless");
    const { socket } = open();
    const sent = sentSince(proxy);
    socket.write(head("one", `GET /v1/runs/${runId}?waitSeconds=30`).repeat(20));
    await until("the first waits", () => (sent().kinds["results"] ?? 0) > 3);
    socket.destroy();
    await until("the server has heard of it", async () => (await connections()) === 0);
    expect(sent().kinds["get"]).toBe(1);
  });
});
