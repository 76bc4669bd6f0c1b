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
  readonly serve: TestEngine["serve"];
  readonly url: string;
  /** The URL of the database. */
  readonly database: string;
  readonly runs: Stocked;
  /** Opens a page of the dashboard; closed at the end of the test. */
  visit(path: string, options?: BrowserContextOptions): Promise<Page>;
  /** The complaints of the pages so far: the test does not fail by them. */
  takeComplaints(): string[];
  /** Opens a page elsewhere on this machine. */
  readonly open: Browsing["open"];
}

export interface Browsing {
  /** Opens a page; closed at the end of the test. It may call its own origin only. */
  open(url: string, options?: BrowserContextOptions): Promise<Page>;
  takeComplaints(): string[];
}

/** Call it at the top of a test file. */
export async function visitShop(options: ServerOptions & { empty?: boolean } = {}): Promise<Visited> {
  const { empty = false, ...serverOptions } = options;
  const database = await testDatabase();
  const { pawl, serve } = testEngine(database);
  if (!empty) await serve(shop);
  const { url } = await testServer({ database: database.url, logger: silent, ...serverOptions });
  const runs = empty ? ({} as Stocked) : await stock(pawl);
  const { open, takeComplaints } = await browse();
  const visit = (path: string, given?: BrowserContextOptions) => open(url + path, given);
  return { pawl, serve, url, database: database.url, runs, visit, open, takeComplaints };
}

/** A browser alone. Call it at the top of a test file. */
export async function browse(): Promise<Browsing> {
  const browser = await launchBrowser();
  afterAll(() => browser.close());
  const complaints: string[] = [];
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((context) => context.close()));
    expect(complaints.splice(0)).toEqual([]);
  });
  return {
    open: async (url, options = {}) => {
      const page = await newPage(browser, new URL(url).origin, options, complaints);
      open.push(page.context());
      await page.goto(url);
      return page;
    },
    takeComplaints: () => complaints.splice(0),
  };
}

async function newPage(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions,
  complaints: string[],
): Promise<Page> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(`threw ${error.message}`));
  page.on("dialog", (dialog) => complaints.push(`asked ${dialog.message()}`));
  page.on("console", (message) => {
    // An answer of 401, 403 or 404 is logged by the browser itself.
    const isExpected = /status of (401|403|404|422)/.test(message.text());
    if (message.type() === "error" && !isExpected) complaints.push(`logged ${message.text()}`);
  });
  page.on("request", (request) => {
    // A test may go on to another server of this machine.
    const own = [origin, page.url() === "about:blank" ? origin : new URL(page.url()).origin];
    const isPage = request.isNavigationRequest() && new URL(request.url()).hostname === "127.0.0.1";
    if (!isPage && !own.includes(new URL(request.url()).origin)) complaints.push(`called ${request.url()}`);
  });
  return page;
}
