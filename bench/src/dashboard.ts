/**
 * `dashboard`: the dashboard in Chromium beside many runs. For each page: how long after the click the
 * first content is there, and its slowest request, which bounds its slowest query. Then live updates:
 * a worker ends runs for minutes while the overview is open; the memory of the page must stay, and
 * the server, which does nothing else, shows what an open dashboard costs.
 */

import { connect, job, serve } from "pawl";
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { fillMixed } from "./fill.js";
import { startServer } from "./start-server.js";
import { median } from "./statistics.js";

const rounds = 3;
/** Runs that end per second during the live updates, if the machine can. */
const perSecond = 1_000;
const everyMs = 100;

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const pages: Readonly<Record<string, string>> = {
  overview: "/",
  runs: "/runs",
  failed: "/runs?status=failed",
  filtered: "/runs?name=name-7&status=failed&error=E_4",
  run: "/runs/64",
  waiting: "/waiting",
  definitions: "/definitions",
  definition: "/definitions/name-3",
  schedules: "/schedules",
  queues: "/queues",
  keys: "/keys",
  limits: "/limits",
  workers: "/workers",
  doctor: "/doctor",
  actions: "/actions",
};

export const dashboard: Bench = {
  defaults: { count: 1_000_000, quickCount: 20_000, concurrency: 1_000 },
  async measure({ database, count, quick, minutes, signal }: BenchRequest): Promise<Figure[]> {
    await fillMixed(database.observer, count);
    const server = await startServer(database.url, signal);
    const browser = await chromium.launch({
      executablePath: process.env["PAWL_TEST_BROWSER"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"],
    });
    try {
      const figures: Figure[] = [];
      for (const [name, path] of Object.entries(pages)) {
        figures.push(...(await measurePage(browser, name, server.url + path)));
      }
      const liveMs = minutes === undefined ? (quick ? 30_000 : 600_000) : minutes * 60_000;
      figures.push(...(await measureLive(browser, server, database.url, liveMs)));
      return figures;
    } finally {
      await browser.close();
      server.stop();
    }
  },
};

async function measurePage(browser: Browser, name: string, url: string): Promise<Figure[]> {
  const firsts: number[] = [];
  const slowest: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const begunMs = performance.now();
    await page.goto(url, { waitUntil: "commit" });
    await page.locator("main h1").waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
    firsts.push(performance.now() - begunMs);
    slowest.push(
      await page.evaluate<number>(
        "Math.max(...performance.getEntriesByType('resource').filter(({ initiatorType }) => initiatorType === 'fetch')" +
          ".map(({ responseEnd, requestStart }) => responseEnd - requestStart))",
      ),
    );
    await context.close();
  }
  return [
    { key: `${name}_content_ms`, label: `${name}: first content`, value: median(firsts), unit: "ms" },
    { key: `${name}_request_ms`, label: `${name}: slowest request`, value: median(slowest), unit: "ms" },
  ];
}

async function measureLive(
  browser: Browser,
  server: Awaited<ReturnType<typeof startServer>>,
  database: string,
  ms: number,
): Promise<Figure[]> {
  const page = await browser.newPage();
  const session = await page.context().newCDPSession(page);
  await page.goto(server.url);
  await page.locator("main h1").waitFor();
  const cpuShare = async (during: () => Promise<void>): Promise<number> => {
    const begunMs = performance.now();
    const before = await server.usage();
    await during();
    const after = await server.usage();
    return ((after.cpuMs - before.cpuMs) / (performance.now() - begunMs)) * 100;
  };
  const atRest = await cpuShare(() => pause(Math.min(10_000, ms)));

  const tick = job({ name: "bench-tick", run: () => 1 });
  const worker = serve([tick], { url: database, logger: silent });
  const pawl = connect(database);
  await worker.ready;
  let started = 0;
  let firstBytes = 0;
  const begunMs = performance.now();
  const live = await cpuShare(async () => {
    while (performance.now() - begunMs < ms) {
      const turnMs = performance.now();
      const inputs = Array.from({ length: (perSecond * everyMs) / 1_000 }, () => ({ input: {} }));
      started += (await pawl.startMany(tick, inputs)).length;
      // The first fifth warms up.
      if (firstBytes === 0 && performance.now() - begunMs > ms / 5) firstBytes = await heapOf(page, session);
      await pause(Math.max(0, everyMs - (performance.now() - turnMs)));
    }
  });
  const seconds = (performance.now() - begunMs) / 1_000;
  const lastBytes = await heapOf(page, session);
  await worker.stop();
  await pawl.close();
  return [
    { key: "live_rate", label: "live: runs started", value: started / seconds, unit: "/s" },
    {
      key: "live_heap_first",
      label: "live: memory of the page, at first",
      value: firstBytes / 1e6,
      unit: "MB",
    },
    { key: "live_heap_last", label: "live: memory of the page, at last", value: lastBytes / 1e6, unit: "MB" },
    { key: "live_server_cpu", label: "live: CPU of the server", value: live, unit: "% of a core" },
    { key: "rest_server_cpu", label: "at rest: CPU of the server", value: atRest, unit: "% of a core" },
  ];
}

/** The memory that the page holds after a collection of garbage. */
async function heapOf(page: Page, session: CDPSession): Promise<number> {
  await session.send("HeapProfiler.collectGarbage");
  return page.evaluate<number>("performance.memory.usedJSHeapSize");
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
