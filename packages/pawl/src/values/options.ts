/**
 * Checks the options that users pass to definitions, `start`, `serve` and `connect`. A check
 * returns the value with its type, or throws `InvalidOption` with the rule, the given value and,
 * for a typo, a suggestion. Called at every public entry; the code behind it does not check again.
 */

import { byteLength, isLongerThan } from "./bytes.js";
import { InvalidOption } from "./errors.js";
import { show } from "./show.js";

/** An options object with only the allowed members, each of unknown type. */
export type GivenOptions<Name extends string> = Readonly<Partial<Record<Name, unknown>>>;

/**
 * Checks that it is an object with only the allowed members. `what` names it: "the options of
 * start".
 */
export function checkOptions<Name extends string>(
  given: unknown,
  allowed: readonly Name[],
  what: string,
): GivenOptions<Name> {
  if (!isObject(given)) {
    // A string is not shown: it may be a URL with a password.
    const shown = typeof given === "string" ? "a string" : show(given);
    throw new InvalidOption(`${what} must be an object, not ${shown}`);
  }
  const names: readonly string[] = allowed;
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown === undefined) return given;
  throw new InvalidOption(
    `unknown option ${show(unknown, 60)} in ${what}; allowed: ${allowed.join(", ")}${suggest(unknown, allowed)}`,
  );
}

/** A whole number within bounds. */
export function checkInteger(value: unknown, what: string, bounds: { min: number; max: number }): number {
  const { min, max } = bounds;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new InvalidOption(`${what} must be a whole number from ${min} to ${max}, not ${show(value)}`);
}

/** A string that is not empty, at most `maxBytes` long in UTF-8, and that PostgreSQL can store. */
export function checkString(value: unknown, what: string, { maxBytes }: { maxBytes: number }): string {
  if (typeof value !== "string" || value === "") {
    throw new InvalidOption(`${what} must be a string that is not empty, not ${show(value)}`);
  }
  if (isLongerThan(value, maxBytes)) {
    throw new InvalidOption(`${what} must be at most ${maxBytes} bytes long, not ${byteLength(value)}`);
  }
  if (/[\0\p{Surrogate}]/u.test(value)) {
    throw new InvalidOption(`${what} must not contain \\u0000 or half of a surrogate pair: ${show(value)}`);
  }
  return value;
}

/** A function. Its parameters are checked by the types of the caller, not here. */
export function checkFunction(value: unknown, what: string): (...given: unknown[]) => unknown {
  if (isFunction(value)) return value;
  throw new InvalidOption(`${what} must be a function, not ${show(value)}`);
}

function isFunction(value: unknown): value is (...given: unknown[]) => unknown {
  return typeof value === "function";
}

/** Any object but an array and null. */
export function isObject(value: unknown): value is Readonly<Partial<Record<string, unknown>>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One of a few words. */
export function checkOneOf<Word extends string>(value: unknown, what: string, words: readonly Word[]): Word {
  const word = words.find((candidate) => candidate === value);
  if (word !== undefined) return word;
  const meant = typeof value === "string" ? suggest(value, words) : "";
  throw new InvalidOption(`${what} must be one of ${words.join(", ")}, not ${show(value)}${meant}`);
}

/** `; did you mean "…"?` if one of the known names is at most two edits away, else nothing. */
export function suggest(given: string, known: Iterable<string>): string {
  const best = nearest(given, known);
  return best === undefined ? "" : `; did you mean "${best}"?`;
}

/** The known name that is at most two edits away from the given one, and nearest to it. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = 3;
  for (const name of known) {
    if (Math.abs(name.length - given.length) >= bestDistance) continue;
    const distance = editDistance(given.toLowerCase(), name.toLowerCase());
    // Any two words of two letters are at most two edits apart: no basis for a suggestion.
    if (distance < bestDistance && distance < name.length) [best, bestDistance] = [name, distance];
  }
  return best;
}

/** Insertions, deletions and replacements that lead from one word to the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[to.length]!;
}
