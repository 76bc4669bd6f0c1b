import { connect as open, type Socket } from "node:net";
import { connect } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const { url } = await testDatabase();
const { server, url: address, call } = await testServer({ database: url, maxPayloadBytes: 10_000 });
const port = Number(new URL(address).port);
const pawl = connect(url);
afterAll(() => pawl.close());

const sockets = new Set<Socket>();
afterAll(() => {
  for (const socket of sockets) socket.destroy();
});

/** A connection, and whatever the server has said on it so far. */
function dial(): { socket: Socket; said: () => string; closed: Promise<void> } {
  const socket = open(port, "127.0.0.1");
  let text = "";
  sockets.add(socket);
  socket.setEncoding("utf8").on("data", (part: string) => (text += part));
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return { socket, said: () => text, closed };
}

const isWell = async (): Promise<void> => {
  expect((await call("GET", "/healthz")).status).toBe(200);
  expect((await call("POST", "/v1/workflows/well/runs", { input: 1 })).status).toBe(201);
};

describe("a connection", () => {
  it.each([
    ["garbage", "\u0000\u0001 hello \r\n\r\n", "400"],
    ["another protocol", "*1\r\n$4\r\nPING\r\n", "400"],
    [
      "endless headers",
      `GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ${"a".repeat(20_000)}\r\n\r\n`,
      "431",
    ],
    [
      "two lengths",
      "POST /v1/runs/ended HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
      "400",
    ],
    [
      "a length beside chunks",
      "POST /v1/runs/ended HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      "400",
    ],
    ["no host", "GET /v1/limits HTTP/1.1\r\n\r\n", "400"],
  ])("with %s is refused and closed", async (_what, text, status) => {
    const { socket, said, closed } = dial();
    socket.write(text);
    await closed;
    expect(said()).toContain(`HTTP/1.1 ${status} `);
    await isWell();
  });

  it.each([
    ["announced", "content-length: 1000000000\r\n\r\n"],
    ["sent in chunks", `transfer-encoding: chunked\r\n\r\n20000\r\n${"a".repeat(0x20000)}\r\n`],
  ])("with a huge body, %s, is refused before it has all come", async (_how, rest) => {
    const { socket, said } = dial();
    socket.write(
      `POST /v1/workflows/a/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${rest}`,
    );
    await until("it is refused", () => said().includes("HTTP/1.1 413 "));
    expect(said()).toContain("PayloadTooLarge");
    await isWell();
  });

  it("whose headers come too slowly is answered with 408 and closed", async () => {
    const slow = dial();
    const begun = dial();
    slow.socket.write("GET /healthz HTTP/1.1\r\nhost: local");
    begun.socket.write("G");
    await Promise.all([slow.closed, begun.closed]);
    expect(slow.said()).toContain("HTTP/1.1 408 ");
    expect(slow.said()).toContain("RequestTimeout");
    await isWell();
  });
});

it(
  "2,000 long polls are held, and dropped without a trace when their callers go",
  { timeout: 120_000 },
  async () => {
    const { runId } = await pawl.start("never");
    const held = Array.from({ length: 2_000 }, dial);
    for (const { socket } of held) {
      socket.write(`GET /v1/runs/${runId}?waitSeconds=30 HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    }
    await until("all are connected", async () => (await connections()) >= 2_000, 30_000);
    await isWell();
    for (const { socket } of held) socket.destroy();
    await until("none is left", async () => (await connections()) < 50, 30_000);
    await isWell();
  },
);

function connections(): Promise<number> {
  return new Promise((resolve, reject) =>
    server.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
