/**
 * `npm run screenshots`: opens every page of the dashboard in Chromium, light, dark and as wide as a phone,
 * and writes the pictures to `docs/images/dashboard`.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startLocalPostgres } from "@pawl/local-postgres";
import { createServer } from "@pawl/server";
import { connect, job, migrate, serve } from "pawl";
import pg from "pg";
import type { Browser, Route } from "playwright-core";
import { until } from "../support/until.js";
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
  machine: `/runs/${runs.order}`,
  children: `/runs/${runs.album}`,
  waiting: "/waiting",
  definitions: "/definitions",
  definition: "/definitions/order",
  schedules: "/schedules",
  schedule: "/schedules/nightly-charge",
  queues: "/queues",
  keys: "/keys",
  limits: "/limits",
  workers: "/workers",
  doctor: "/doctor",
  actions: "/actions",
  ...(process.argv.includes("--all")
    ? { completed: `/runs/${runs.ended}`, filtered: "/runs?status=failed&input.euros=900&name=charge" }
    : {}),
});

/** The pages that look unlike a narrow window on a phone. */
const onPhone = new Set(["overview", "runs", "run", "machine", "waiting"]);

async function shoot(browser: Browser, url: string, runs: Stocked): Promise<void> {
  for (const { name: look, ...options } of looks) {
    const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
    for (const path of ["runs/**", "doctor", "workers*"]) await context.route(`**/v1/${path}`, hidePlace);
    const page = await context.newPage();
    for (const [name, path] of Object.entries(pages(runs))) {
      if (look === "phone" && !onPhone.has(name)) continue;
      await page.goto(url + path);
      await page.locator("main h1").waitFor();
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      await page.locator(".chart-room:empty").first().waitFor({ state: "detached" });
      if (name === "run") await page.getByRole("button", { name: /send-welcome/ }).click();
      await page.screenshot({ path: join(target, `${name}-${look}.png`) });
    }
    await context.close();
  }
}

/** An hour of history for the charts. */
async function addHistory(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("set search_path = pawl");
  // Waves of starts, a few failures, and a backlog that grows and goes.
  await client.query(
    `insert into series (grain, name, queue, at, started, completed, failed, cancelled, latency, backlog)
     select 'minute', '', '', date_trunc('minute', now()) - n * interval '1 minute', w.started, w.started - f.failed, f.failed,
       (n % 23 = 0)::int * 2, array_fill(0, array[1 + cardinality(latency_bounds())]), greatest(0, 900 - abs(n - 25) * 180) + n % 7
     from generate_series(1, 70) n, lateral (select (60 + 35 * sin(n / 7.0) + 9 * cos(n * 2.3))::int as started) w,
       lateral (select case when n % 17 = 3 then 6 else (n % 5 = 1)::int end as failed) f
     on conflict do nothing`,
  );
  // Most runs end in the bucket of half a second, one of twenty in a slower one.
  await client.query(
    `update series s set latency[b.fast] = completed * 19 / 20, latency[b.fast + 3 + extract(minute from at)::int / 15 % 3] = completed / 20 + 1
     from (select 1 + width_bucket(480, latency_bounds()) as fast) b where grain = 'minute' and completed > 10`,
  );
  await client.end();
}

/** The pictures do not tell where this checkout is: stacks have the paths of an application. */
async function hidePlace(route: Route): Promise<void> {
  const response = await route.fetch();
  const body = (await response.text())
    .replaceAll(/(file:\/\/)?\/[^"\s(]*\/dashboard\/shop\.js/g, "/app/shop.js")
    .replaceAll(/\/[^"\s(]*\/socket/g, "db:5432")
    .replaceAll(/"host":"[^"]*"/g, '"host":"app-1"');
  await route.fulfill({ response, body });
}

mkdirSync(target, { recursive: true });
const postgres = await startLocalPostgres();
await migrate({ url: postgres.url });
const pawl = connect(postgres.url);
const press = job({
  name: "press",
  run: ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
});
const worker = serve([...shop, press], { url: postgres.url, logger: silent });
const server = await createServer({ database: postgres.url, port: 0 });
const browser = await launchBrowser();
try {
  await worker.ready;
  const runs = await stock(pawl);
  // The first holds the key until the end.
  for (const n of [1, 2, 3]) await pawl.start(press, { n }, { partitionKey: "customer-42" });
  await addHistory(postgres.url);
  await until("the failures are counted", async () => (await pawl.failures()).failures.length > 1);
  await shoot(browser, await server.listen(), runs);
} finally {
  await browser.close();
  await worker.stop();
  await server.close();
  await pawl.close();
  await postgres.stop();
}
