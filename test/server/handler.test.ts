import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { createHandler, type HandlerOptions, type HostRequest, type PawlHandler } from "@pawl/server";
import express from "express";
import { Hono } from "hono";
import { InvalidOption, job } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent, testEngine } from "../support/engine.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
await serve([job({ name: "greet", run: (_ctx, input: { who: string }) => `hello ${input.who}` })]);

const basePath = "/admin/pawl";
const bearer = { authorization: "Bearer admin-secret-0123456789" };
const json = { "content-type": "application/json" };

/** An app of a user with the handler in it; some have read the body of a request before. */
const apps = {
  express: (pawlHandler: PawlHandler) => {
    const app = express();
    app.use(basePath, pawlHandler.listener);
    app.get("/own", (_request, response) => void response.send("mine"));
    return createHttpServer(app);
  },
  "express with parsed bodies": (pawlHandler: PawlHandler) => {
    const app = express();
    app.use(express.json({ limit: "20mb" }));
    app.use(pawlHandler.listener);
    app.get("/own", (_request, response) => void response.send("mine"));
    return createHttpServer(app);
  },
  hono: (pawlHandler: PawlHandler) => {
    const app = new Hono();
    app.all(`${basePath}/*`, (c) => pawlHandler.fetch(c.req.raw));
    app.get("/own", (c) => c.text("mine"));
    return createAdaptorServer({ fetch: app.fetch });
  },
};
type AppName = keyof typeof apps;

async function mount(name: AppName, options: Partial<HandlerOptions<HostRequest>> = {}) {
  const handler = await createHandler({
    database: database.url,
    basePath,
    logger: silent,
    ...("authorize" in options ? {} : { tokens: ["ops:admin:admin-secret-0123456789"] }),
    ...options,
  });
  const server = apps[name](handler).listen(0, "127.0.0.1");
  afterAll(async () => {
    await handler.close();
    server.close();
  });
  await new Promise((resolve) => server.once("listening", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const call = (method: string, path: string, body?: unknown, headers: object = bearer) =>
    fetch(origin + basePath + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : json) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return { handler, origin, call };
}

describe.each(Object.keys(apps) as AppName[])("a handler mounted in %s", async (name) => {
  const { origin, call } = await mount(name);

  it("serves the API below its path, and leaves the other paths to the app", async () => {
    const started = await call("POST", "/v1/workflows/greet/runs", { input: { who: "ann" } });
    expect(started.status).toBe(201);
    const { runId } = (await started.json()) as { runId: string };
    const ended = await call("POST", "/v1/runs/ended", { runIds: [runId], waitSeconds: 20 });
    expect(await ended.json()).toMatchObject({ runs: [{ runId, output: "hello ann" }] });
    expect(await (await fetch(`${origin}/own`)).text()).toBe("mine");
    expect((await fetch(`${origin}/v1/limits`, { headers: bearer })).status).toBe(404);
    expect((await fetch(`${origin}${basePath}x/v1/limits`, { headers: bearer })).status).toBe(404);
    const unknown = await call("GET", "/v1/nothing");
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { code: "RouteNotFound" }]);
  });

  it("asks for a token, and answers with problem documents", async () => {
    const refused = await call("GET", "/v1/limits", undefined, {});
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect(refused.headers.get("content-type")).toBe("application/problem+json");
    const wrong = await call("PUT", "/v1/limits/mail", { allowed: "many" });
    expect([wrong.status, await wrong.json()]).toMatchObject([
      422,
      { code: "InvalidOption", field: "body.allowed" },
    ]);
  });

  it("serves the dashboard with its own path in it, and its security headers", async () => {
    for (const path of ["", "/", "/runs/64"]) {
      const page = await fetch(origin + basePath + path, { headers: { accept: "text/html" } });
      expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(page.headers.get("x-frame-options")).toBe("DENY");
      const text = await page.text();
      expect(text).toContain(`<base href="${basePath}/" />`);
      const [, asset = ""] = /src="\.(\/assets\/[^"]+)"/.exec(text) ?? [];
      const script = await fetch(origin + basePath + asset);
      expect([script.status, script.headers.get("content-type")]).toEqual([
        200,
        "text/javascript; charset=utf-8",
      ]);
      expect((await script.text()).length).toBeGreaterThan(1_000);
    }
    const head = await fetch(`${origin}${basePath}/`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const document = (await (await call("GET", "/v1/openapi.json")).json()) as { servers: unknown };
    expect(document.servers).toEqual([{ url: basePath }]);
  });

  it("refuses a body that is too large", async () => {
    const input = "x".repeat(1024 * 1024 + 64 * 1024);
    const refused = await call("POST", "/v1/workflows/greet/runs", { input });
    expect([refused.status, await refused.json()]).toMatchObject([413, { code: "PayloadTooLarge" }]);
  });

  it("takes a body in chunks, and one that is not JSON is refused", async () => {
    const stream = new Blob([JSON.stringify({ input: { who: "bob" } })]).stream();
    const sent = { method: "POST", headers: { ...bearer, ...json }, body: stream, duplex: "half" };
    const started = await fetch(`${origin}${basePath}/v1/workflows/greet/runs`, sent as RequestInit);
    expect(started.status).toBe(201);
    const form = new URLSearchParams({ allowed: "1" });
    const refused = await fetch(`${origin}${basePath}/v1/limits/mail`, {
      method: "PUT",
      headers: bearer,
      body: form,
    });
    expect(refused.status).toBe(415);
  });

  it("streams events while they happen, until the caller leaves", async () => {
    const leaving = new AbortController();
    const stream = await fetch(`${origin}${basePath}/v1/events?name=streamed`, {
      headers: bearer,
      signal: leaving.signal,
    });
    expect(stream.headers.get("content-type")).toContain("text/event-stream");
    const { runId } = await pawl.start("streamed");
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of stream.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (text.includes(`"${runId}"`)) break;
    }
    leaving.abort();
    expect(text).toContain("event: changes");
  });

  it("gives nothing to a caller who has left while waiting", async () => {
    const queue = `left-${name.replaceAll(" ", "-")}`;
    const leaving = new AbortController();
    const left = fetch(`${origin}${basePath}/v1/queues/${queue}/receive`, {
      method: "POST",
      headers: { ...bearer, ...json },
      body: JSON.stringify({ waitSeconds: 30 }),
      signal: leaving.signal,
    });
    // The second caller stands behind the first in line. A later call has its answer, so both wait.
    const stays = call("POST", `/v1/queues/${queue}/receive`, { waitSeconds: 30 });
    await call("GET", "/v1/limits");
    leaving.abort();
    await expect(left).rejects.toThrow("aborted");
    await pawl.queues.send(queue, { n: 1 });
    expect(await (await stays).json()).toMatchObject({ messages: [{ body: { n: 1 } }] });
  });
});

describe.each(Object.keys(apps) as AppName[])("a handler in %s that closes", (name) => {
  it("answers waiting calls at once, and refuses later ones", async () => {
    const { handler, call } = await mount(name, { drainTimeout: "1m" });
    const { runId } = await pawl.start("never");
    const waits = call("POST", "/v1/runs/ended", { runIds: [runId], waitSeconds: 30 });
    // A later call has its answer, so the handler has got the first.
    await call("GET", "/v1/limits");
    const closed = handler.close();
    expect(await (await waits).json()).toEqual({ runs: [], more: false });
    await closed;
    const refused = await call("GET", "/v1/limits");
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: "Unavailable" }]);
    await handler.close();
  });
});

describe.each(["express", "hono"] as const)("authorize of a handler in %s", async (name) => {
  const asked: HostRequest[] = [];
  const { call } = await mount(name, {
    authorize: async (request) => {
      asked.push(request);
      const { headers } = request;
      const user = headers instanceof Headers ? headers.get("cookie") : headers.cookie;
      if (user === "ann") return { name: "ann@example.com", scopes: ["admin"], from: "10.0.0.7" };
      if (user === "bob") return { name: "bob@example.com", scopes: ["read"], names: ["billing-"] };
      if (user === "eve") return { name: "eve", scopes: ["everything" as "read"] };
      return null;
    },
  });
  const as = (cookie: string, method: string, path: string, body?: unknown, headers: object = {}) =>
    call(method, path, body, { cookie, ...headers });

  it("decides who may do what, and is asked with the request of the app", async () => {
    expect(await (await as("ann", "GET", "/v1/me")).json()).toEqual({
      name: "ann@example.com",
      scopes: ["admin", "read", "write", "worker", "start"],
      names: null,
      queues: null,
    });
    expect(await (await as("bob", "GET", "/v1/me")).json()).toMatchObject({ scopes: ["read"] });
    expect((await as("bob", "PUT", "/v1/limits/billing-x", { concurrent: 1 })).status).toBe(403);
    const stranger = await as("", "GET", "/v1/limits");
    // No bearer token would help.
    expect([stranger.status, stranger.headers.get("www-authenticate")]).toEqual([401, null]);
    expect(asked.at(-1)).toHaveProperty(name === "hono" ? "formData" : "originalUrl");
    expect((await as("eve", "GET", "/v1/limits")).status).toBe(500);
  });

  it("names the caller and the address in the action log", async () => {
    await as("ann", "PUT", `/v1/limits/set-${name}`, { concurrent: 1 });
    const [action] = (await pawl.actions.list({ target: `set-${name}` })).actions;
    expect(action).toMatchObject({ who: "ann@example.com", from: "10.0.0.7", action: "limits.set" });
  });

  it("is not asked for a call that a page of another site makes", async () => {
    const before = asked.length;
    for (const headers of [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "https://evil.example" },
      { origin: "null" },
    ])
      expect((await as("ann", "POST", "/v1/runs/1/cancel", {}, headers)).status).toBe(403);
    expect(asked.length).toBe(before);
    const own = { "sec-fetch-site": "same-origin" };
    expect((await as("ann", "GET", "/v1/limits", undefined, own)).status).toBe(200);
  });
});

describe("createHandler", () => {
  it.each([
    [{}, "no option says who may call"],
    [{ authorize: () => null, tokens: ["a:read:secret-0123456789-abc"] }, "authorize excludes tokens"],
    [{ authorize: "me" }, "authorize must be a function"],
    [{ proxyAuth: true, basePath: "admin" }, "basePath must be a path"],
    [{ proxyAuth: true, basePath: '/a"><script>' }, "basePath must be a path"],
    [{ proxyAuth: true, basePath: "/a/../b" }, "basePath must be a path"],
    [{ proxyAuth: true, port: 1 }, "port"],
    [{ proxyAuth: true, dashboard: { readonly: true } }, "readonly"],
  ])("refuses %j", async (options, message) => {
    const made = createHandler({ database: database.url, ...options } as HandlerOptions<HostRequest>);
    await expect(made).rejects.toThrow(InvalidOption);
    await expect(made).rejects.toThrow(message);
  });

  it("has types that let in only the requests that authorize takes", () => {
    // Compiled, never called.
    const misuse = async (request: Request, message: IncomingMessage, response: ServerResponse) => {
      const { listener } = await createHandler({ authorize: (taken: Request) => (taken.url ? null : null) });
      // @ts-expect-error: authorize takes a Request.
      listener(message, response);
      const { fetch: door } = await createHandler({
        authorize: (taken: express.Request) => taken.body && null,
      });
      // @ts-expect-error: authorize takes a request of Express.
      await door(request);
      const both = await createHandler({ proxyAuth: true });
      both.listener(message, response);
      return both.fetch(request);
    };
    expect(misuse).toBeTypeOf("function");
  });
});
