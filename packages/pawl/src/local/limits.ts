/**
 * Limits as users set them: a rate `{ allowed: 100, period: "1s", burst: 200 }`, the number of runs
 * that execute at once `{ concurrent: 3 }`, or both. Checked here and stored in the database, which
 * alone decides which run gets a token or a slot. A change applies to the next claim. Runs that the
 * old limit postponed are brought forward, and runs that waited for a slot are admitted: one batch
 * at once, the others by the sweeps of the workers. Called by `serve`, `pawl.limits` and the server.
 */

import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkName } from "../values/names.js";
import { checkInteger, checkOptions, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import type { ClientStore, StoredLimit } from "../store/store.js";

const batch = 1_000;
/** A limit must allow at least one token within this time. */
const longestMs = 366 * 86_400_000;

/** A limit with a rate, and perhaps also a number of runs at once. */
export interface RateOptions {
  /** How many tokens per period. A claim takes one token, or its `weight`. */
  readonly allowed: number;
  readonly period: Duration;
  /** How many unused tokens are kept for a burst. Default: `allowed`, at least 1. */
  readonly burst?: number | undefined;
  /**
   * How many runs that name this limit in `concurrency` execute at once, over all workers; with a
   * key: how many runs of each key. From 1 to 32,767. Default: any number.
   */
  readonly concurrent?: number | undefined;
}

/** A limit without a rate: only how many runs execute at once. */
export interface SlotOptions extends Pick<RateOptions, "concurrent"> {
  readonly concurrent: number;
  readonly allowed?: undefined;
  readonly period?: undefined;
  readonly burst?: undefined;
}

/** The options of `limits.set`: a rate, `concurrent`, or both. */
export type LimitOptions = RateOptions | SlotOptions;

/** Checks the option `limits` of `serve`. */
export function checkLimits(given: unknown): StoredLimit[] {
  if (given === undefined) return [];
  if (!isObject(given)) {
    throw new InvalidOption(
      `limits must be an object such as { stripe: { allowed: 100, period: "1s" }, gpu: { concurrent: 3 } }, not ${show(given)}`,
    );
  }
  return Object.entries(given).map(([name, options]) => checkLimit(name, options));
}

export function checkLimit(name: unknown, given: unknown): StoredLimit {
  const checked = checkName("limit", name);
  const what = `the limit "${checked}"`;
  const names = ["allowed", "period", "burst", "concurrent"] as const;
  const { concurrent, ...rate } = checkOptions(given, names, what);
  if (concurrent === undefined) return { name: checked, ...checkRate(rate, what), concurrent: null };
  const slots = checkInteger(concurrent, `concurrent of ${what}`, { min: 1, max: 32_767 });
  const hasRate = Object.values(rate).some((value) => value !== undefined);
  return { name: checked, ...(hasRate ? checkRate(rate, what) : noRate), concurrent: slots };
}

const noRate = { allowed: null, periodMs: null, burst: null };

function checkRate(
  { allowed, period, burst }: { allowed?: unknown; period?: unknown; burst?: unknown },
  what: string,
): Omit<StoredLimit, "name" | "concurrent"> {
  if (allowed === undefined && period === undefined) {
    throw new InvalidOption(
      `${what} limits nothing; give it a rate such as { allowed: 100, period: "1s" }, or { concurrent: 3 }, or both`,
    );
  }
  const periodMs = toMilliseconds(period, `period of ${what}`);
  if (periodMs < 1) throw new InvalidOption(`period of ${what} must be at least 1 ms, not ${show(period)}`);
  const perPeriod = checkTokens(allowed, `allowed of ${what}`, 0);
  if (perPeriod / periodMs < 1 / longestMs) {
    throw new InvalidOption(
      `${what} must allow at least 1 in 366 days, not ${show(allowed)} per ${show(period)}: raise allowed, or shorten period`,
    );
  }
  return {
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
