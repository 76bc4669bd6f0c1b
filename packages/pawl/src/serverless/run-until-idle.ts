/**
 * `runUntilIdle`: a worker for functions that live only for a moment, such as those of Lambda, Vercel
 * or Cloud Run. It serves until nothing is due or its budget ends, stops gracefully and reports. It
 * asks the database (SQL `next_due`) what is due: the queue of one function is the work of them all.
 */

import { givenTarget } from "../api/locate.js";
import { openPostgres } from "../api/serve.js";
import type { AnyDefinition } from "../define/definition.js";
import type { NextDueReader } from "../store/schedule-store.js";
import { RetryDelay } from "../timing/retry-delay.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption, NotSupported, Unavailable } from "../values/errors.js";
import { isObject } from "../values/options.js";
import { show } from "../values/show.js";
import { checkServe, type ServeOptions, type ServeSettings } from "../worker/options.js";
import { EngineWorker } from "../worker/worker.js";

/** All options of `serve` but those that need a process that stays, and the budget. */
export interface RunUntilIdleOptions extends Omit<ServeOptions, "token" | "metrics"> {
  /**
   * How long it may take, from 1 second on. It claims nothing in the last fifth of that, or in the
   * last 5 seconds, and aborts steps that still run at its end. Releasing their runs may take 2 more
   * seconds: let the platform stop the function a little later. Default "25s".
   */
  readonly budget?: Duration | undefined;
}

/** The answer of `runUntilIdle`: the runs that ended, and when the next one is due. */
export interface IdleReport {
  /** How many runs ended meanwhile with a result. */
  readonly completed: number;
  /** How many runs failed for good. */
  readonly failed: number;
  /** How many runs were cancelled by a client of this process. */
  readonly cancelled: number;
  /** Nothing was due when it stopped. False: the budget ended first. */
  readonly isIdle: boolean;
  /**
   * When to call it again at the latest: the next run, retry, timer or schedule of these definitions
   * is due then, or the lease of a worker that may have died ends. Null: when something is started.
   */
  readonly nextDueAt: Date | null;
}

const defaultBudget = "25s";
/** The heartbeats of a worker, per lease. */
const beatsPerLease = 5;
const longestLeaseMs = 10_000;
const longestDrainMs = 5_000;
const reapMs = 250;
const pollMs = 50;

/**
 * Serves these definitions until nothing is due, or until the budget ends. Releases the rest and
 * reports what it did and when the next run is due.
 *
 * @example
 * export async function GET() {
 *   return Response.json(await runUntilIdle([sendMail, cleanup], { budget: "25s" }));
 * }
 */
export async function runUntilIdle(
  definitions: readonly AnyDefinition[],
  options: RunUntilIdleOptions = {},
): Promise<IdleReport> {
  const beganMs = performance.now();
  const { settings, url, budgetMs } = check(definitions, options);
  const stopAtMs = beganMs + budgetMs - settings.drainMs;
  let nextDue: NextDueReader["nextDue"] | undefined;
  const worker = new EngineWorker(settings, async () => {
    const transport = await openPostgres(url, settings.schema);
    ({ nextDue } = transport);
    return transport;
  });
  const ended = { completed: 0, failed: 0, cancelled: 0 };
  worker.on("run.completed", ({ status }) => void ended[status]++);
  const outOfTime = setTimeout(() => void worker.stop(), stopAtMs - beganMs);
  try {
    await worker.ready.catch((error: unknown) => {
      if (performance.now() < stopAtMs) throw error;
      throw new Unavailable(
        `the budget of ${budgetMs} ms ended before the worker was ready. The log says whether the database was ` +
          "reached; if it only takes long, raise budget",
        { cause: error },
      );
    });
    const dueMs = await idle(worker, () => nextDue!([...settings.queues.keys()], definitions), stopAtMs);
    await worker.stop();
    const isIdle = dueMs !== undefined;
    const nextMs = dueMs === undefined ? 0 : dueMs;
    return { ...ended, isIdle, nextDueAt: nextMs === null ? null : new Date(Date.now() + nextMs) };
  } finally {
    clearTimeout(outOfTime);
    await worker.stop();
  }
}

/**
 * Waits until the worker executes nothing and nothing is due. Answers when the next run is due
 * (null: none is), or undefined if it is time to stop before.
 */
async function idle(
  worker: EngineWorker,
  nextDue: () => Promise<number | null>,
  stopAtMs: number,
): Promise<number | null | undefined> {
  const retryDelay = new RetryDelay();
  while (performance.now() < stopAtMs) {
    let delayMs = pollMs;
    if (worker.executing().length === 0) {
      try {
        const dueMs = await nextDue();
        if (dueMs === null || dueMs > 0) {
          // A claim may have come meanwhile.
          if (worker.executing().length === 0) return dueMs;
        } else {
          worker.hint(null);
        }
        retryDelay.reset();
      } catch {
        // The worker logs an outage, and goes on after it.
        delayMs = retryDelay.next();
      }
    }
    await changed(worker, Math.min(delayMs, stopAtMs - performance.now()));
  }
  return undefined;
}

/** Resolves when the worker gives a claim back, or after this time. */
async function changed(worker: EngineWorker, longestMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const off = worker.on("run.released", () => end());
    const timer = setTimeout(() => end(), longestMs);
    const end = (): void => {
      clearTimeout(timer);
      off();
      resolve();
    };
  });
}

interface Checked {
  readonly settings: ServeSettings;
  readonly url: Parameters<typeof openPostgres>[0];
  readonly budgetMs: number;
}

function check(definitions: unknown, options: unknown): Checked {
  if (!isObject(options)) {
    throw new InvalidOption(`the options of runUntilIdle must be an object, not ${show(options)}`);
  }
  const { budget = defaultBudget, ...given } = options;
  const budgetMs = toMilliseconds(budget, "budget");
  if (!(budgetMs >= 1_000 && budgetMs <= 86_400_000)) {
    throw new InvalidOption(`budget must be from 1 second to a day, not ${show(budget)}`);
  }
  // Runs of a function that died are reclaimed after its lease: within the budget of the next one.
  const leaseMs = Math.max(1_000, Math.min(longestLeaseMs, budgetMs / 3));
  const settings = checkServe(
    definitions,
    {
      lease: leaseMs,
      heartbeat: leaseMs / beatsPerLease,
      reapInterval: reapMs,
      drainTimeout: Math.min(longestDrainMs, budgetMs / 5),
      metrics: false,
      ...given,
    },
    "runUntilIdle",
  );
  if (settings.drainMs >= budgetMs) {
    throw new InvalidOption(`drainTimeout must be shorter than budget (${budgetMs} ms), which includes it`);
  }
  const target = givenTarget(given["url"], undefined);
  if (target.kind === "server") {
    throw new NotSupported(
      "runUntilIdle works on the database itself: give a postgres:// URL, connection options or your own pool",
    );
  }
  return { settings, url: target.url, budgetMs };
}
