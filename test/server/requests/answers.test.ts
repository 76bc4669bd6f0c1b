/** What answers never tell, and what every answer says of itself. */

import { once } from "node:events";
import { connect as connectSocket } from "node:net";
import { connect, job, serve, Unavailable } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { proxyTo } from "../../support/proxies/proxy.js";
import { testServer } from "../../support/server.js";

const database = await testDatabase();
const { url } = database;
const { call: callDirectly } = await testServer({ database: url, logger: silent });
const proxy = await proxyTo(url);
const cuttable = await testServer({ database: proxy.url, logger: silent });

/** Whatever of this database's address is in a text. */
function addressIn(text: string, of = url): string[] {
  const { hostname, port, username, pathname, searchParams } = new URL(of);
  const parts = [hostname, port, username, pathname.slice(1), searchParams.get("host") ?? ""];
  return parts.filter((part) => part.length > 1 && new RegExp(`(?<![\\w.])${part}(?![\\w])`).test(text));
}

describe("the address of the database is in no error that may reach a caller", () => {
  it.each([
    ["nobody listens", "postgres://somebody@127.0.0.1:1/app"],
    ["there is no such host", "postgres://somebody@no-such-host.invalid:5432/app"],
    ["there is no such database", Object.assign(new URL(url), { pathname: "/no_such_database" }).href],
    ["there is no such role", Object.assign(new URL(url), { username: "no_such_role", password: "" }).href],
  ])("when %s", async (_, wrong) => {
    const client = connect(wrong);
    const error = (await client.start("x").catch((thrown: unknown) => thrown)) as Unavailable;
    await client.close();
    expect(error).toBeInstanceOf(Unavailable);
    expect(addressIn(error.message, wrong), error.message).toEqual([]);
    // Operators find it beside the message.
    expect(error.database).toContain(new URL(wrong).pathname.slice(1));
  });

  it("when the database is away: no answer of a server", async () => {
    const { call } = cuttable;
    proxy.cut();
    const definition = { name: "a", version: 1, kind: "job", queue: "default", priority: 0, retentionMs: 0 };
    for (const [method, path, body] of [
      ["GET", "/readyz"],
      ["GET", "/v1/runs"],
      ["GET", "/v1/runs/64"],
      ["GET", "/v1/limits"],
      ["GET", "/v1/subscriptions"],
      ["POST", "/v1/workflows/a/runs", {}],
      ["POST", "/v1/runs/batch", { runs: [{ name: "a" }], atomic: false }],
      ["POST", "/v1/queues/a/messages", { body: 1 }],
      ["POST", "/v1/topics/a/messages", { body: 1 }],
      [
        "POST",
        "/v1/workers/register",
        { workerId: "w", leaseMs: 9_999, queues: ["a"], info: {}, definitions: [definition] },
      ],
    ] as const) {
      const answer = await call(method, path, body);
      const text = JSON.stringify(answer.body);
      expect(text).toMatch(/unavailable/i);
      expect([...addressIn(text), ...addressIn(text, proxy.url)], text).toEqual([]);
    }
    proxy.restore();
  });

  it("when a value is refused by the database: no answer of a server", async () => {
    const call = callDirectly;
    const definition = { name: "a", version: 1, kind: "job", queue: "default", priority: 0, retentionMs: 0 };
    const worker = { workerId: "twice", leaseMs: 9_999, queues: ["a"], info: {}, definitions: [definition] };
    await call("POST", "/v1/workers/register", worker);
    const answer = await call("POST", "/v1/workers/register", worker);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(addressIn(JSON.stringify(answer.body)), JSON.stringify(answer.body)).toEqual([]);
  });

  it("when a run fails by it: nothing that is recorded", async () => {
    const elsewhere = "postgres://somebody@127.0.0.1:1/elsewhere";
    const pawl = connect(url);
    const failing = job({
      name: "failing",
      maxAttempts: 1,
      run: async () => {
        const other = connect(elsewhere);
        try {
          await other.start("x");
        } finally {
          await other.close();
        }
      },
    });
    const worker = serve([failing], { url, logger: silent });
    const { runId } = await pawl.start(failing, null);
    await pawl.result(runId).catch(() => {});
    const { error } = await pawl.runs.get(runId);
    expect(error?.message).toContain("the database cannot be used");
    expect(addressIn(JSON.stringify(error), elsewhere), JSON.stringify(error)).toEqual([]);
    await worker.stop();
    await pawl.close();
  });
});

describe("every answer", async () => {
  const { call, url: at } = await testServer({ database: url, proxyAuth: true });
  const allowed = { authorization: "anybody" };
  const check = (headers: { get(name: string): string | null }): void => {
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  };

  it.each([
    ["GET", "/healthz", 200],
    ["HEAD", "/readyz", 200],
    ["GET", "/metrics", 200],
    ["GET", "/v1/openapi.json", 200],
    ["GET", "/v1/runs", 200],
    ["GET", "/v1/runs/1", 404],
    ["GET", "/v1/nothing", 404],
    ["PUT", "/v1/runs", 405],
    ["POST", "/v1/workflows/Wrong/runs", 422],
    ["GET", "/v1/runs/%zz", 400],
  ])("is not to be cached, and of the type that it says: %s %s", async (method, path, status) => {
    const answer = await call(method, path, method === "POST" ? {} : undefined, allowed);
    expect(answer.status).toBe(status);
    check(answer.headers);
  });

  it("is so without a token, and when it is no HTTP that comes", async () => {
    const refused = await call("GET", "/v1/runs");
    expect(refused.status).toBe(401);
    check(refused.headers);
    const { hostname, port } = new URL(at);
    const socket = connectSocket(Number(port), hostname);
    afterAll(() => socket.destroy());
    socket.end("nonsense\r\n\r\n");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await once(socket, "close");
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    check({ get: (name) => new RegExp(`^${name}: (.*)\r$`, "m").exec(text)?.[1] ?? null });
  });
});

describe("what a worker tells of itself", () => {
  const definition = { name: "a", version: 1, kind: "job", queue: "a", priority: 0, retentionMs: 0 };
  const register = (workerId: string, info: unknown) =>
    callDirectly("POST", "/v1/workers/register", {
      workerId,
      leaseMs: 9_999,
      queues: ["a"],
      info,
      definitions: [definition],
    });

  it.each([101, 3_000])(
    "is refused when it is nested %i levels deep, and nobody is registered",
    async (depth) => {
      const answer = await register(
        `deep-${depth}`,
        JSON.parse(`{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`),
      );
      expect(answer).toMatchObject({
        status: 422,
        body: { code: "NotSerializable", detail: expect.stringContaining("levels deep") },
      });
      expect(await database.sql("select 1 from workers where id like 'deep-%'")).toEqual([]);
    },
  );

  it("is taken when it is not", async () => {
    expect((await register("flat", { host: "a" })).status).toBe(200);
  });
});
