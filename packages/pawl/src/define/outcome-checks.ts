/**
 * Checks of the members of an outcome. Each throws `InvalidOption` with the given value and the
 * rule. `checkOutcome` calls them and turns the error into an `InvalidOutcome` of the step.
 */

import { isChild } from "./child.js";
import { toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkSignalName } from "../values/names.js";
import { checkInteger, checkOptions, checkString, isObject, suggest } from "../values/options.js";
import { checkConcurrency, checkRateLimit } from "./rate-limit.js";
import { pathSegment, shorten, show } from "../values/show.js";

const bounds = { names: 100, children: 10_000 };

/** The names of a machine's steps: a set of them, or the map of its steps. */
export interface StepNames {
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** The step that an outcome goes to. */
export function checkStep(given: unknown, steps: StepNames): void {
  if (typeof given === "string" && steps.has(given)) return;
  const names = [...steps.keys()];
  const meant = typeof given === "string" ? suggest(given, names) : "";
  throw new InvalidOption(
    `there is no step ${show(given, 140)}; the steps are ${shorten(names.join(", "), 500)}${meant}`,
  );
}

/** The state of an outcome. `toJson` checks later whether JSON can represent it. */
export function checkState(state: unknown): void {
  if (state === undefined) throw new InvalidOption("its state is missing; pass ctx.state to keep it");
}

/** The options of `ctx.next`. */
export function checkNextOptions(given: unknown): void {
  const names = ["priority", "partitionKey", "rateLimit", "weight", "concurrency"] as const;
  const { priority, partitionKey, rateLimit, weight, concurrency } = checkOptions(
    given,
    names,
    "its options",
  );
  if (priority !== undefined) checkInteger(priority, "priority", { min: -32_768, max: 32_767 });
  if (partitionKey !== undefined && partitionKey !== null) {
    checkString(partitionKey, "partitionKey", { maxBytes: 512 });
  }
  checkRateLimit(rateLimit, weight);
  if (concurrency !== undefined && concurrency !== null) checkConcurrency(concurrency);
}

/** The signals that an outcome waits for. */
export function checkNames(given: unknown): void {
  if (!Array.isArray(given)) {
    checkSignalName(given);
    return;
  }
  if (given.length === 0 || given.length > bounds.names) {
    throw new InvalidOption(
      `its names must be one name of a signal, or a list of 1 to ${bounds.names} names, not a list of ${given.length}`,
    );
  }
  for (const name of given) checkSignalName(name);
}

/** The options of `ctx.awaitSignal`. */
export function checkAwaitOptions(given: unknown): void {
  const { timeout, match } = checkOptions(given, ["timeout", "match"], "its options");
  if (timeout !== undefined) toMilliseconds(timeout, "its timeout");
  if (match !== undefined && !isPlainObject(match)) {
    throw new InvalidOption(
      `its match must be a plain object with members of the payload such as { orderId: 7 }, not ${show(match)}`,
    );
  }
  const missing = pathOfUndefined(match, "match");
  if (missing !== null) {
    throw new InvalidOption(
      `its ${missing} is undefined and would match any payload; set a value, or leave it out to match any`,
    );
  }
}

/** The path of the first undefined member, which JSON would leave out; null if there is none. */
function pathOfUndefined(value: unknown, path: string, depth = 0): string | null {
  if (!isObject(value) || depth > 100) return null;
  for (const [key, member] of Object.entries(value)) {
    const at = path + pathSegment(key);
    if (member === undefined) return at;
    const inside = pathOfUndefined(member, at, depth + 1);
    if (inside !== null) return inside;
  }
  return null;
}

/** An object that JSON stores as an object: not a Map or a Date, and without `toJSON`. */
function isPlainObject(value: unknown): boolean {
  return (
    isObject(value) && Object.prototype.toString.call(value) === "[object Object]" && !("toJSON" in value)
  );
}

/** The children of a spawn. */
export function checkChildren(given: unknown): void {
  if (!Array.isArray(given)) {
    throw new InvalidOption(`its children must be an array of child(…), not ${show(given)}`);
  }
  if (given.length > bounds.children) {
    throw new InvalidOption(`it has ${given.length} children; one spawn starts at most ${bounds.children}`);
  }
  for (const [index, item] of given.entries()) {
    if (isChild(item)) continue;
    throw new InvalidOption(`children[${index}] must be made by child(definition, input), not ${show(item)}`);
  }
}
