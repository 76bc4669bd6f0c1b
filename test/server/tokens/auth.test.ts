import { createHash } from "node:crypto";
import { createServer, type ServerOptions } from "@pawl/server";
import { InvalidOption } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";

const { url } = await testDatabase();

const secrets = {
  read: "reader-secret-0123456789",
  write: "writer-secret-0123456789",
  start: "starter-secret-0123456789",
  worker: "worker-secret-0123456789",
  admin: "admin-secret-0123456789",
};
type Scope = keyof typeof secrets;
const hashed = createHash("sha256").update(secrets.worker).digest("hex");
const tokens = [
  `reader:read:${secrets.read}`,
  `writer:write:${secrets.write}`,
  `starter:start:${secrets.start}`,
  `worker:worker:sha256:${hashed}`,
  `admin:admin:${secrets.admin}`,
];
const included: Record<Scope, readonly Scope[]> = {
  read: ["read"],
  start: ["start"],
  write: ["read", "write", "start"],
  worker: ["worker"],
  admin: ["read", "write", "worker", "start", "admin"],
};

describe("with tokens", async () => {
  const { server, call } = await testServer({ database: url, tokens });
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
  /** What is asked is refused anyway, by its body or by what does not exist: only who asks is of interest. */
  const ask = (method: string, path: string, headers: Record<string, string>) =>
    call(
      method,
      path.replaceAll(/:\w+/g, "none"),
      method === "GET" || method === "HEAD" ? undefined : { wrong: 1 },
      headers,
    );
  const guarded = server.routes.filter(({ scope }) => scope !== "open");

  it("only the probes are open", () => {
    const open = server.routes.filter(({ scope }) => scope === "open").map(({ path }) => path);
    expect([...new Set(open)].toSorted()).toEqual(["/healthz", "/readyz"]);
    expect(guarded.length).toBeGreaterThan(15);
  });

  it.each(guarded)(
    "$method $path answers 401 without a token, and to one that is not known",
    async ({ method, path }) => {
      for (const headers of [{}, bearer("unknown-secret-0123456789"), { authorization: "Basic eDp5" }]) {
        const answer = await ask(method, path, headers);
        expect(answer).toMatchObject({ status: 401, body: { code: "Unauthorized", status: 401 } });
        expect(answer.headers.get("www-authenticate")).toBe("Bearer");
        expect(answer.headers.get("content-type")).toBe("application/problem+json");
      }
    },
  );

  it.each(guarded)(
    "$method $path answers 403 to the wrong scopes, and to no others",
    async ({ method, path, scope }) => {
      for (const [name, secret] of Object.entries(secrets)) {
        const { status } = await ask(method, path, bearer(secret));
        const isAllowed = scope === "any" || included[name as Scope].includes(scope as Scope);
        if (isAllowed) expect([401, 403]).not.toContain(status);
        else expect(status).toBe(403);
      }
    },
  );

  it("a short secret is 401, also if its hash is listed", async () => {
    const short = createHash("sha256").update("test").digest("hex");
    const other = await createServer({ database: url, port: 0, tokens: [`old:admin:sha256:${short}`] });
    const answer = await other.app.inject({ url: "/v1/limits", headers: bearer("test") });
    expect(answer.statusCode).toBe(401);
    expect(answer.json()).toMatchObject({ detail: expect.stringContaining("at least 16 characters") });
    await other.close();
  });

  it("a path that there is none of is 401 without a token, and 404 with any", async () => {
    expect((await call("GET", "/v1/nothing")).status).toBe(401);
    expect((await call("GET", "/v1/nothing", undefined, bearer(secrets.worker))).status).toBe(404);
  });

  it("a route of the embedder's own that names no scope is for admin", async () => {
    const own = await createServer({ database: url, port: 0, tokens });
    own.app.get("/own", () => "mine");
    const address = await own.listen();
    const status = async (secret: string) =>
      (await fetch(`${address}/own`, { headers: bearer(secret) })).status;
    expect(await Promise.all([status(secrets.write), status(secrets.admin)])).toEqual([403, 200]);
    await own.close();
  });
});

describe("behind a proxy", async () => {
  const { call } = await testServer({ database: url, proxyAuth: true });

  it("the header must be there, whatever it says", async () => {
    expect((await call("GET", "/v1/limits")).status).toBe(401);
    expect((await call("GET", "/v1/limits", undefined, { authorization: "whatever" })).status).toBe(200);
    expect((await call("GET", "/healthz")).status).toBe(200);
  });

  it("a page of another site is refused, although the browser adds the header", async () => {
    const pause = (site: string) =>
      call("POST", "/v1/queues/default/pause", undefined, {
        authorization: "Basic b3BlcmF0b3I6",
        "sec-fetch-site": site,
      });
    expect((await pause("cross-site")).status).toBe(403);
    expect((await pause("same-site")).status).toBe(403);
    expect((await pause("same-origin")).status).toBe(200);
    expect((await call("POST", "/v1/queues/default/resume", undefined, { authorization: "x" })).status).toBe(
      200,
    );
  });
});

describe("with neither", async () => {
  const { call, url: address } = await testServer({ database: url });

  it("callers of this machine need no header", async () => {
    expect((await call("GET", "/v1/limits")).status).toBe(200);
    expect((await fetch(`${address.replace("127.0.0.1", "localhost")}/v1/limits`)).status).toBe(200);
  });

  it("pages of other sites get nothing through the browser", async () => {
    expect(await call("GET", "/v1/limits", undefined, { origin: "https://evil.example" })).toMatchObject({
      status: 403,
      body: { code: "Forbidden" },
    });
    expect((await call("GET", "/v1/limits", undefined, { origin: address })).status).toBe(200);
  });

  it.each(["0.0.0.0", "::", "10.0.0.1", "example.com"])(
    "it does not listen on %s, and says what to do",
    async (host) => {
      await expect(createServer({ database: url, host })).rejects.toThrow(
        /PAWL_TOKENS.*PAWL_PROXY_AUTH=1.*listen on 127\.0\.0\.1/s,
      );
    },
  );
});

describe("tokens are refused", () => {
  it.each([
    ["no list", "a:read:0123456789abcdef", "must be a list"],
    ["an empty list", [], "at least one"],
    ["another form", ["secret"], "token 1 must have the form name:scope+scope[:names"],
    [
      "an unknown scope",
      ["a:reed:0123456789abcdef"],
      'the unknown scope "reed"; scopes are start, read, write, worker, admin',
    ],
    ["a scope of every object", ["a:constructor:0123456789abcdef"], "scopes are"],
    ["a short secret", ["a:read:short"], "has 5 characters; it needs at least 16"],
    ["a list of prefixes without a secret", ["a:read:names=billing-and-more-"], "token 1 must have the form"],
    ["an empty prefix", ["a:read:names=:0123456789abcdef"], 'the prefix "" in names='],
    ["a prefix that no name has", ["a:read:queues=b+B:0123456789abcdef"], 'the prefix "B" in queues='],
    ["half a hash", ["a:read:sha256:00ff"], "64 hex digits"],
    [
      "a secret twice",
      ["a:read:0123456789abcdef", "b:admin:0123456789abcdef"],
      'the tokens "a" and "b" have the same secret',
    ],
    ["a name twice", ["a:read:0123456789abcdef", "a:write:fedcba9876543210"], 'two tokens have the name "a"'],
  ])("as %s", async (_how, given, message) => {
    const creating = createServer({ database: url, tokens: given } as ServerOptions);
    await expect(creating).rejects.toThrow(InvalidOption);
    await expect(creating).rejects.toThrow(message);
  });

  it("together with a proxy", async () => {
    await expect(createServer({ database: url, tokens, proxyAuth: true })).rejects.toThrow(
      "exclude each other",
    );
  });

  it("without their secrets in the message", async () => {
    await expect(createServer({ tokens: ["a:reed:0123456789abcdef"] })).rejects.not.toThrow(
      "0123456789abcdef",
    );
  });
});
