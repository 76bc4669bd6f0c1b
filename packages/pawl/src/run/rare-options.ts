/**
 * Checks the start options that few runs have: tags, timeout, debounce, correlation key and
 * concurrency limit. Together they are one member of a `NewRun`, null for a run without any. Called
 * by `newRun`.
 */

import { checkTimeout } from "../define/definition-options.js";
import { checkConcurrency } from "../define/rate-limit.js";
import type { RareOptions } from "../store/store.js";
import { byteLength, isLongerThan } from "../values/bytes.js";
import { toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkTagName } from "../values/names.js";
import { checkOptions, checkString, type GivenOptions, isObject } from "../values/options.js";
import { show } from "../values/show.js";

export const rareOptionNames = ["tags", "timeout", "debounce", "correlationKey", "concurrency"] as const;

/** The options that give a run its time or its key in another way. */
const notWithDebounce = ["uniqueKey", "idempotencyKey", "delay", "at"] as const;

type Given = GivenOptions<(typeof rareOptionNames)[number] | (typeof notWithDebounce)[number]>;

/** The rare options among these, with the timeout of the definition; null: none. */
export function checkRareOptions(
  given: Given,
  { of, timeoutMs }: { of: string; timeoutMs: number | null },
): RareOptions | null {
  const { tags, timeout, debounce, correlationKey, concurrency } = given;
  const isPlain =
    tags === undefined &&
    timeout === undefined &&
    debounce === undefined &&
    correlationKey === undefined &&
    concurrency === undefined;
  if (isPlain) return timeoutMs === null ? null : { timeoutMs };
  const deadline = timeout === undefined ? timeoutMs : checkTimeout(timeout);
  return {
    ...(tags === undefined ? {} : { tags: checkTags(tags) }),
    ...(deadline === null ? {} : { timeoutMs: deadline }),
    ...(debounce === undefined ? {} : { debounce: checkDebounce(debounce, given, of) }),
    ...(correlationKey === undefined ? {} : { correlationKey: checkCorrelationKey(correlationKey) }),
    ...(concurrency === undefined ? {} : { concurrency: checkConcurrency(concurrency) }),
  };
}

const maxTags = 16;
const maxTagBytes = 256;

/** Checks tags: names as for steps, and texts. A text may be empty. */
export function checkTags(value: unknown): Record<string, string> {
  if (!isObject(value)) {
    throw new InvalidOption(
      `tags must be an object of names and texts such as { customer: "42" }, not ${show(value)}`,
    );
  }
  const entries = Object.entries(value);
  if (entries.length > maxTags) {
    throw new InvalidOption(`a run has at most ${maxTags} tags, not ${entries.length}: leave some out`);
  }
  return Object.fromEntries(entries.map(([name, text]) => [checkTagName(name), checkTagValue(name, text)]));
}

function checkTagValue(name: string, value: unknown): string {
  if (typeof value !== "string") {
    throw new InvalidOption(`the tag ${name} must be a string, not ${show(value)}: write it as a text`);
  }
  if (isLongerThan(value, maxTagBytes)) {
    throw new InvalidOption(
      `the tag ${name} must be at most ${maxTagBytes} bytes long, not ${byteLength(value)}`,
    );
  }
  return value === "" ? value : checkString(value, `the tag ${name}`, { maxBytes: maxTagBytes });
}

/** Checks a correlation key. */
export function checkCorrelationKey(value: unknown): string {
  return checkString(value, "correlationKey", { maxBytes: 512 });
}

function checkDebounce(value: unknown, given: Given, of: string): NonNullable<RareOptions["debounce"]> {
  const { key, delay, maxDelay } = checkOptions(value, ["key", "delay", "maxDelay"], "debounce");
  const other = notWithDebounce.find((name) => given[name] !== undefined);
  if (other !== undefined) {
    const why = other.endsWith("Key")
      ? "the key of debounce already names the run"
      : "debounce sets the time";
    throw new InvalidOption(`${of} takes debounce or ${other}, not both: ${why}; leave out ${other}`);
  }
  if (delay === undefined) {
    throw new InvalidOption('debounce needs delay, the time after the last start, such as "5s"');
  }
  const delayMs = toMilliseconds(delay, "the delay of debounce");
  const maxDelayMs = maxDelay === undefined ? null : toMilliseconds(maxDelay, "the maxDelay of debounce");
  if (maxDelayMs !== null && maxDelayMs < delayMs) {
    throw new InvalidOption(
      `the maxDelay of debounce must be at least its delay of ${show(delay)}, not ${show(maxDelay)}`,
    );
  }
  return {
    key: checkString(key, "the key of debounce", { maxBytes: 512 }),
    delayMs,
    ...(maxDelayMs === null ? {} : { maxDelayMs }),
  };
}
