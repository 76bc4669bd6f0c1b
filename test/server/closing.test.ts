import { connect as openSocket } from "node:net";
import { createServer } from "@pawl/server";
import { connect, type Logger } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { proxyTo } from "../support/proxies/proxy.js";
import { until } from "../support/until.js";

const { url } = await testDatabase();

const json = { "content-type": "application/json" };

describe("a server that closes", () => {
  it("answers what it holds back at once, and takes no more", async () => {
    const server = await createServer({ database: url, port: 0, drainTimeout: "1m" });
    const address = await server.listen();
    const pawl = connect(url);
    const { runId } = await pawl.start("never");
    const held = [
      fetch(`${address}/v1/runs/${runId}?waitSeconds=30`),
      fetch(`${address}/v1/runs/ended`, {
        method: "POST",
        headers: json,
        body: JSON.stringify({ runIds: [runId], waitSeconds: 30 }),
      }),
    ];
    await until("both are held", async () => (await connections(server)) === held.length);
    await fetch(`${address}/healthz`);
    const closed = server.close();
    const [run, ended] = await Promise.all(held.map(async (answer) => (await answer).json()));
    expect(run).toMatchObject({ runId, status: "running" });
    expect(ended).toEqual({ runs: [], more: false });
    await closed;
    await expect(fetch(`${address}/healthz`)).rejects.toThrow("fetch failed");
    await pawl.close();
  });

  it("ends connections that do not end by themselves when its patience has passed", async () => {
    const server = await createServer({ database: url, port: 0, drainTimeout: 100 });
    const address = new URL(await server.listen());
    const socket = openSocket(Number(address.port), address.hostname);
    const gone = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => {}).resume();
    // Half a request: nobody knows when the rest will come.
    socket.write(
      "POST /v1/runs/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    );
    await until("it is connected", async () => (await connections(server)) === 1);
    await server.close();
    await gone;
  });

  it("may be closed twice, and without ever having listened", async () => {
    const server = await createServer({ database: url, port: 0 });
    await Promise.all([server.close(), server.close()]);
    await server.close();
  });
});

describe("an answer says nothing of the inside", () => {
  const logged: object[] = [];
  const keep = (given: object | string): void => void (typeof given === "object" && logged.push(given));
  const logger: Logger = { debug: () => {}, info: () => {}, warn: keep, error: keep };

  it("when something unexpected fails: 500, and the log has it under the id of the request", async () => {
    const server = await createServer({ database: url, port: 0, logger });
    server.app.get("/own", { config: { scope: "read" } }, () => {
      throw new Error("secret details");
    });
    const answer = await fetch(`${await server.listen()}/own`, { headers: { "x-request-id": "one" } });
    const text = await answer.text();
    expect(answer.status).toBe(500);
    expect(JSON.parse(text)).toMatchObject({ code: "Internal", status: 500, instance: "one" });
    expect(text).not.toContain("secret");
    expect(logged).toEqual([{ err: new Error("secret details"), requestId: "one" }]);
    await server.close();
  });

  it("when the database is away: 503, to be tried again", async () => {
    const { directUrl: doomed } = await testDatabase();
    const proxy = await proxyTo(doomed);
    const server = await createServer({ database: proxy.url, port: 0, logger });
    const address = await server.listen();
    proxy.cut();
    const answer = await fetch(`${address}/v1/limits`);
    const text = await answer.text();
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(JSON.parse(text)).toMatchObject({ code: "Unavailable" });
    expect(text).not.toContain(new URL(doomed).pathname.slice(1));
    expect((await fetch(`${address}/readyz`)).status).toBe(503);
    expect((await fetch(`${address}/healthz`)).status).toBe(200);
    await server.close();
  });

  it("when the schema is gone: 500, since asking again does not help, and it is not ready", async () => {
    const { url: doomed, sql } = await testDatabase();
    const server = await createServer({ database: doomed, port: 0, logger });
    const address = await server.listen();
    await sql("alter schema pawl rename to elsewhere");
    const answer = await fetch(`${address}/v1/limits`);
    const text = await answer.text();
    expect(answer.status).toBe(500);
    expect(JSON.parse(text)).toMatchObject({ code: "Internal" });
    expect(text).not.toContain(new URL(doomed).pathname.slice(1));
    expect((await fetch(`${address}/readyz`)).status).toBe(503);
    await server.close();
  });
});

function connections(server: Awaited<ReturnType<typeof createServer>>): Promise<number> {
  return new Promise((resolve, reject) =>
    server.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
