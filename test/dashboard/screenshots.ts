/**
 * `npm run screenshots`: opens every page of the dashboard in Chromium, light, dark and as wide as a phone,
 * and writes the pictures to `docs/images/dashboard`.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startLocalPostgres } from "@pawl/local-postgres";
import { createServer } from "@pawl/server";
import { connect, migrate, serve } from "pawl";
import type { Browser, Route } from "playwright-core";
import { launchBrowser } from "./browser.js";
import { shop, stock, type Stocked } from "./shop.js";

// npm runs scripts in the root of the repository.
const target = join(process.cwd(), "docs/images/dashboard");

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const looks = [
  { name: "light", colorScheme: "light", viewport: { width: 1200, height: 760 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1200, height: 760 } },
  { name: "phone", colorScheme: "light", viewport: { width: 390, height: 780 } },
] as const;

const pages = (runs: Stocked): Record<string, string> => ({
  overview: "/",
  runs: "/runs",
  run: `/runs/${runs.signup}`,
  failed: `/runs/${runs.failed}`,
  children: `/runs/${runs.album}`,
  definitions: "/definitions",
  schedules: "/schedules",
  schedule: "/schedules/nightly-charge",
  queues: "/queues",
  limits: "/limits",
  actions: "/actions",
  ...(process.argv.includes("--all")
    ? { completed: `/runs/${runs.ended}`, filtered: "/runs?status=failed&input.euros=900&name=charge" }
    : {}),
});

async function shoot(browser: Browser, url: string, runs: Stocked): Promise<void> {
  for (const { name: look, ...options } of looks) {
    const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
    await context.route("**/v1/runs/**", hidePlace);
    const page = await context.newPage();
    for (const [name, path] of Object.entries(pages(runs))) {
      await page.goto(url + path);
      await page.locator("main h1").waitFor();
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      if (name === "run") await page.getByRole("button", { name: /send-welcome/ }).click();
      await page.screenshot({ path: join(target, `${name}-${look}.png`), fullPage: look === "phone" });
    }
    await context.close();
  }
}

/** The pictures do not tell where this checkout is: stacks have the paths of an application. */
async function hidePlace(route: Route): Promise<void> {
  const response = await route.fetch();
  const body = (await response.text()).replaceAll(
    /(file:\/\/)?\/[^"\s(]*\/dashboard\/shop\.js/g,
    "/app/shop.js",
  );
  await route.fulfill({ response, body });
}

mkdirSync(target, { recursive: true });
const postgres = await startLocalPostgres();
await migrate({ url: postgres.url });
const pawl = connect(postgres.url);
const worker = serve(shop, { url: postgres.url, logger: silent });
const server = await createServer({ database: postgres.url, port: 0 });
const browser = await launchBrowser();
try {
  await worker.ready;
  await shoot(browser, await server.listen(), await stock(pawl));
} finally {
  await browser.close();
  await worker.stop();
  await server.close();
  await pawl.close();
  await postgres.stop();
}
