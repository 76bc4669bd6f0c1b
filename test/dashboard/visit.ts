/**
 * A shop, a server and a browser for a test file, and pages of the dashboard in it. A page that breaks the
 * content security policy, logs an error or calls another host fails its test.
 */

import type { Pawl } from "pawl";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, expect } from "vitest";
import type { ServerOptions } from "@pawl/server";
import { testDatabase } from "../support/database.js";
import { silent, type TestEngine, testEngine } from "../support/engine.js";
import { testServer } from "../support/server.js";
import { launchBrowser } from "./browser.js";
import { shop, stock, type Stocked } from "./shop.js";

export interface Visited extends Pick<TestEngine, "serve"> {
  readonly pawl: Pawl;
  readonly url: string;
  readonly runs: Stocked;
  /** Opens a page of the dashboard; closed at the end of the test. */
  visit(path: string, options?: BrowserContextOptions): Promise<Page>;
}

/** Call it at the top of a test file. */
export async function visitShop(options: ServerOptions & { empty?: boolean } = {}): Promise<Visited> {
  const { empty = false, ...serverOptions } = options;
  const database = await testDatabase();
  const engine = testEngine(database);
  if (!empty) await engine.serve(shop);
  const { url } = await testServer({ database: database.url, logger: silent, ...serverOptions });
  const runs = empty ? ({} as Stocked) : await stock(engine.pawl);
  const browser = await launchBrowser();
  afterAll(() => browser.close());
  const complaints: string[] = [];
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((context) => context.close()));
    expect(complaints.splice(0)).toEqual([]);
  });
  return {
    pawl: engine.pawl,
    serve: engine.serve,
    url,
    runs,
    visit: async (path, contextOptions = {}) => {
      const page = await newPage(browser, url, contextOptions, complaints);
      open.push(page.context());
      await page.goto(url + path);
      return page;
    },
  };
}

async function newPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions,
  complaints: string[],
): Promise<Page> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(`threw ${error.message}`));
  page.on("console", (message) => {
    // An answer of 401, 403 or 404 is logged by the browser itself.
    const isExpected = /status of (401|403|404|422)/.test(message.text());
    if (message.type() === "error" && !isExpected) complaints.push(`logged ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) complaints.push(`called ${request.url()}`);
  });
  return page;
}
