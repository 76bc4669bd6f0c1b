import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { testServer } from "../support/server.js";

const { url: database } = await testDatabase();
const { url } = await testServer({
  database,
  logger: silent,
  tokens: ["reader:read:reader-secret-0123456789abcdef"],
});
const get = (path: string, accept = "text/html,*/*", method = "GET") =>
  fetch(url + path, { method, headers: { accept } });
const assetsOf = (page: string): string[] =>
  [...page.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);

describe("the dashboard", () => {
  it("is served to everybody at / and at every unknown path that a browser opens", async () => {
    const page = await (await get("/")).text();
    expect(page).toContain('<div id="app">');
    for (const path of ["/runs", "/runs/64?x=1", "/a/b/c"]) {
      const answer = await get(path);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      expect(await answer.text()).toBe(page);
    }
    const head = await get("/", "*/*", "HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it("leaves the API alone: unknown calls are problems, for browsers too", async () => {
    for (const [path, accept, method] of [
      ["/v1/nothing", "text/html", "GET"],
      ["/v1", "text/html", "GET"],
      ["/metrics/x", "text/html", "GET"],
      ["/runs", "application/json", "GET"],
      ["/runs", "text/html", "POST"],
      ["/assets/none.js", "text/html", "GET"],
    ] as const) {
      const answer = await get(path, accept, method);
      expect([path, answer.status]).toEqual([path, 401]);
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
    }
  });

  it("has a strict policy: no inline code, no other host, no frame around it", async () => {
    const { headers } = await get("/");
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|http|\*|data:/);
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("cache-control")).toBe("no-cache");
    const page = await (await get("/")).text();
    expect(page).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
    expect(page).not.toMatch(/(src|href)="(https?:)?\/\/./);
  });

  it("has assets with hashed names that caches keep, and at most 120 KB of zipped JavaScript", async () => {
    const assets = assetsOf(await (await get("/")).text());
    expect(assets.length).toBeGreaterThanOrEqual(3);
    let bytes = 0;
    for (const path of assets) {
      expect(path).toMatch(/-[\w-]{8}\.(js|css|svg)$/);
      const answer = await get(path, "*/*");
      expect(answer.status).toBe(200);
      expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      const body = Buffer.from(await answer.arrayBuffer());
      if (path.endsWith(".js")) bytes += gzipSync(body).length;
    }
    expect(bytes).toBeGreaterThan(1_000);
    expect(bytes).toBeLessThanOrEqual(120 * 1024);
  });

  it("is not served if the option says so", async () => {
    const other = await testServer({ database, logger: silent, dashboard: false });
    expect((await other.call("GET", "/", undefined, { accept: "text/html" })).status).toBe(404);
  });
});
