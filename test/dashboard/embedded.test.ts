import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { createHandler, type PawlHandler } from "@pawl/server";
import express from "express";
import { Hono } from "hono";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent, testEngine } from "../support/engine.js";
import { shop } from "./shop.js";
import { browse } from "./visit.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
await serve(shop);
const { open, takeComplaints } = await browse();

/** Apps with a login of their own: a cookie says who somebody is. */
const apps = {
  express: (handler: PawlHandler, base: string) => {
    const app = express();
    app.get("/login", (request, response) => {
      response.cookie("user", request.query["as"], { httpOnly: true, sameSite: "lax" }).send("welcome");
    });
    app.use(base, handler.listener);
    return createServer(app);
  },
  hono: (handler: PawlHandler, base: string) => {
    const app = new Hono();
    app.get("/login", (c) => {
      c.header("set-cookie", `user=${c.req.query("as")}; HttpOnly; SameSite=Lax; Path=/`);
      return c.text("welcome");
    });
    app.all(`${base}/*`, (c) => handler.fetch(c.req.raw));
    return createAdaptorServer({ fetch: app.fetch });
  },
};

describe.each([
  ["express", "/admin/pawl"],
  ["hono", "/ops"],
] as const)("the dashboard in an app of %s below %s", async (name, base) => {
  const handler = await createHandler({
    database: database.url,
    basePath: base,
    logger: silent,
    authorize: ({ headers }) => {
      const cookie = headers instanceof Headers ? headers.get("cookie") : headers.cookie;
      if (cookie?.includes("user=ann")) return { name: "ann", scopes: ["admin"] };
      return cookie?.includes("user=bob") ? { name: "bob", scopes: ["read"] } : null;
    },
  });
  const server = apps[name](handler, base).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  afterAll(async () => {
    await handler.close();
    server.close();
  });

  it("asks strangers to sign in to the app, and follows the login of the app", async () => {
    const page = await open(`${origin}${base}/runs`);
    await page.getByRole("heading", { name: "Sign in first" }).waitFor();
    expect(await page.getByLabel("Bearer token").count()).toBe(0);
    await page.goto(`${origin}/login?as=bob`);
    await page.goto(`${origin}${base}/runs`);
    await page.getByText("bob", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Start a run…" }).count()).toBe(0);
  });

  it("starts a run, signals it and sees it complete, all below that path", async () => {
    const { runId } = await pawl.start("order", { item: "ratchet" });
    const page = await open(`${origin}/login?as=ann`);
    await page.goto(`${origin}${base}`);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page
      .getByRole("row")
      .filter({ hasText: `#${runId}` })
      .getByRole("link", { name: "order" })
      .click();
    expect(new URL(page.url()).pathname).toBe(`${base}/runs/${runId}`);
    await page.getByRole("button", { name: "Send “paid”…" }).click();
    await page.getByRole("dialog").getByLabel("Payload").fill('{"euros":25}');
    await page.getByRole("dialog").getByRole("button", { name: "Send the signal" }).click();
    const why = page.getByRole("region", { name: "Why" });
    await why.getByText(/^Completed/).waitFor();
    // Loaded anew at its own address, and left by the button of the browser.
    await page.reload();
    await why.getByText(/^Completed/).waitFor();
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  });

  it("closes while a page is open, and the rest of the app stays", async () => {
    const page = await open(`${origin}/login?as=ann`);
    await page.goto(`${origin}${base}/queues`);
    await page.getByRole("heading", { level: 1, name: "Queues" }).waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    await handler.close();
    expect((await fetch(`${origin}${base}/v1/me`)).status).toBe(503);
    expect((await fetch(`${origin}/login`)).status).toBe(200);
    await page.context().close();
    // The page may have asked once more.
    takeComplaints();
  });
});
