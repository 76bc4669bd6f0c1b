/**
 * The rate limit of a step: which limit it falls under, and how many tokens it takes. Given on the transition into
 * the step or at start; the limits themselves belong to the database, so that only names are checked here. Called by
 * the checks of `ctx.next` and of the options of start.
 */

import { InvalidOption } from "../values/errors.js";
import { checkName } from "../values/names.js";
import { checkInteger, checkOptions, checkString, isObject } from "../values/options.js";
import { show } from "../values/show.js";

/** A limit by its name, or one of its buckets: `{ name, key }` has one for every key. */
export type RateLimit = string | { readonly name: string; readonly key: string };

/** What a claim takes: this many tokens of the bucket with this key; `null` is the bucket of the limit itself. */
export interface Tokens {
  readonly name: string;
  readonly key: string | null;
  readonly weight: number;
}

/** The tokens that the options `rateLimit` and `weight` mean; `null` if they ask for none. */
export function checkRateLimit(rateLimit: unknown, weight: unknown): Tokens | null {
  if (rateLimit === undefined) {
    if (weight === undefined) return null;
    throw new InvalidOption(
      `weight has no meaning without rateLimit: it is the number of tokens to take of that limit (it is ${show(weight)})`,
    );
  }
  return {
    ...checkBucket(rateLimit),
    weight: weight === undefined ? 1 : checkInteger(weight, "weight", { min: 1, max: 1_000_000 }),
  };
}

function checkBucket(given: unknown): Omit<Tokens, "weight"> {
  if (typeof given === "string") return { name: checkName("limit", given), key: null };
  if (!isObject(given)) {
    throw new InvalidOption(
      'rateLimit must be the name of a limit such as "stripe", or { name: "stripe", key: "eu" } for a bucket per ' +
        `key; not ${show(given)}`,
    );
  }
  const { name, key } = checkOptions(given, ["name", "key"], "rateLimit");
  if (key === undefined) {
    throw new InvalidOption(
      `rateLimit ${show(given)} has no key; give the name alone for the one bucket of the limit`,
    );
  }
  return { name: checkName("limit", name), key: checkString(key, "the key of rateLimit", { maxBytes: 256 }) };
}
