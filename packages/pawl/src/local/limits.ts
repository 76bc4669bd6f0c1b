/**
 * Rate limits as users set them: `{ allowed: 100, period: "1s", burst: 200 }`. Checked here and
 * stored in the database, which alone decides which run gets a token. A change applies to the next
 * claim. Runs that the old limit postponed are brought forward: one batch at once, the others by
 * the sweeps of the workers. Called by `serve`, `pawl.limits` and the server.
 */

import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkName } from "../values/names.js";
import { checkOptions, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import type { ClientStore, StoredLimit } from "../store/store.js";

const batch = 1_000;
/** A limit must allow at least one token within this time. */
const longestMs = 366 * 86_400_000;

export interface LimitOptions {
  /** How many tokens per period. A claim takes one token, or its `weight`. */
  readonly allowed: number;
  readonly period: Duration;
  /** How many unused tokens are kept for a burst. Default: `allowed`, at least 1. */
  readonly burst?: number | undefined;
}

/** Checks the option `limits` of `serve`. */
export function checkLimits(given: unknown): StoredLimit[] {
  if (given === undefined) return [];
  if (!isObject(given)) {
    throw new InvalidOption(
      `limits must be an object such as { stripe: { allowed: 100, period: "1s" } }, not ${show(given)}`,
    );
  }
  return Object.entries(given).map(([name, options]) => checkLimit(name, options));
}

export function checkLimit(name: unknown, given: unknown): StoredLimit {
  const checked = checkName("limit", name);
  const what = `the limit "${checked}"`;
  const { allowed, period, burst } = checkOptions(given, ["allowed", "period", "burst"], what);
  const periodMs = toMilliseconds(period, `period of ${what}`);
  if (periodMs < 1) throw new InvalidOption(`period of ${what} must be at least 1 ms, not ${show(period)}`);
  const perPeriod = checkTokens(allowed, `allowed of ${what}`, 0);
  if (perPeriod / periodMs < 1 / longestMs) {
    throw new InvalidOption(
      `${what} must allow at least 1 in 366 days, not ${show(allowed)} per ${show(period)}: raise allowed, or shorten period`,
    );
  }
  return {
    name: checked,
    allowed: perPeriod,
    periodMs,
    burst: burst === undefined ? Math.max(perPeriod, 1) : checkTokens(burst, `burst of ${what}`, 1),
  };
}

/** Sets a limit, and brings one batch of postponed runs forward. */
export async function setLimit(
  store: Pick<ClientStore, "setLimit" | "bringForward">,
  limit: StoredLimit,
): Promise<void> {
  if (await store.setLimit(limit)) await store.bringForward(batch);
}

function checkTokens(value: unknown, what: string, least: number): number {
  if (typeof value === "number" && Number.isFinite(value) && value > 0 && value >= least && value <= 1e9)
    return value;
  throw new InvalidOption(
    `${what} must be a number ${least === 0 ? "above 0" : `from ${least}`} up to 1,000,000,000, not ${show(value)}`,
  );
}
