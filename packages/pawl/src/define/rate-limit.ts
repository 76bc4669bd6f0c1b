/**
 * The rate limit of a step: the name of the limit and the number of tokens. Users pass it to
 * `ctx.next` or at start. The limits themselves are in the database, so this file checks only
 * names. Called by the checks of `ctx.next` and of the options of start.
 */

import { InvalidOption } from "../values/errors.js";
import { checkName } from "../values/names.js";
import { checkInteger, checkOptions, checkString, isObject } from "../values/options.js";
import { show } from "../values/show.js";

/** The name of a limit, or `{ name, key }` for a bucket per key. */
export type RateLimit = string | { readonly name: string; readonly key: string };

/** The name of a concurrency limit, or `{ name, key }` for a limit per key. */
export type ConcurrencyLimit = RateLimit;

/**
 * The tokens that a claim takes, and the key of their bucket. `null` is the bucket of the limit
 * itself.
 */
export interface Tokens {
  readonly name: string;
  readonly key: string | null;
  readonly weight: number;
}

/** Checks the options `rateLimit` and `weight`; `null` if there is no limit. */
export function checkRateLimit(rateLimit: unknown, weight: unknown): Tokens | null {
  if (rateLimit === undefined) {
    if (weight === undefined) return null;
    throw new InvalidOption(
      `weight is ${show(weight)}, but rateLimit is missing; weight is the number of tokens to take from that limit`,
    );
  }
  return {
    ...checkBucket(rateLimit, "rateLimit"),
    weight: weight === undefined ? 1 : checkInteger(weight, "weight", { min: 1, max: 1_000_000 }),
  };
}

/** Checks the option `concurrency`; the limit as it is stored: `limit`, or `limit:key`. */
export function checkConcurrency(concurrency: unknown): string {
  return limitText(checkBucket(concurrency, "concurrency"));
}

/** A limit as it is stored: `limit`, or `limit:key`. Names of limits have no colon. */
export function limitText({ name, key }: Omit<Tokens, "weight">): string {
  return key === null ? name : `${name}:${key}`;
}

function checkBucket(given: unknown, option: "rateLimit" | "concurrency"): Omit<Tokens, "weight"> {
  if (typeof given === "string") return { name: checkName("limit", given), key: null };
  const { example, whole } = texts[option];
  if (!isObject(given)) {
    throw new InvalidOption(
      `${option} must be the name of a limit such as "${example}", or { name: "${example}", key: "eu" } for a ${whole} per ` +
        `key; not ${show(given)}`,
    );
  }
  const { name, key } = checkOptions(given, ["name", "key"], option);
  if (key === undefined) {
    throw new InvalidOption(
      `${option} ${show(given)} has no key; pass the name alone for one ${whole}, or add a key for a ${whole} per key`,
    );
  }
  return { name: checkName("limit", name), key: checkString(key, `the key of ${option}`, { maxBytes: 256 }) };
}

const texts = {
  rateLimit: { example: "stripe", whole: "bucket" },
  concurrency: { example: "gpu", whole: "limit" },
};
