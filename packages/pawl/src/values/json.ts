/**
 * The JSON boundary: every stored value passes through `toJson`, every value read through
 * `fromJson`. `toJson` refuses values that JSON or PostgreSQL's jsonb cannot represent unchanged
 * and names their path. So a step sees the same value on replay as at first. The returned copy has
 * the key order of jsonb: by length in bytes, then by bytes. Sizes count the stored text: jsonb
 * writes numbers without an exponent, so 1e308 has 309 digits. Called for every state, input,
 * result and payload, so it walks over the value once and allocates only the copy.
 */

import { byteLength, isLongerThan, toBytes } from "./bytes.js";
import { isA } from "./error-record.js";
import { NotSerializable, PawlError, PayloadTooLarge } from "./errors.js";
import type { Json } from "./json-types.js";
import { className, pathSegment } from "./show.js";

/** A value as it will be read back, and its text. */
export interface Encoded {
  readonly value: Json;
  readonly text: string;
}

const maxDepth = 100;
const mebibyte = 1024 * 1024;

/** NUL, which jsonb cannot store, and half a surrogate pair, which UTF-8 cannot. */
const notStorable = /[\0\p{Surrogate}]/u;
const notAscii = /[^\0-\x7f]/;

/** The position of the walk: containers and keys from the top down, and the minimal size so far. */
interface Walk {
  readonly what: string;
  readonly limitBytes: number;
  readonly containers: object[];
  readonly keys: (string | number)[];
  bytes: number;
  /** How much longer jsonb writes the numbers than JSON does. */
  digits: number;
}

/**
 * Checks and copies `value`. `what` names it in errors, as the root of the path: "state", "input",
 * "result".
 */
export function toJson(value: unknown, what: string, limitBytes = mebibyte): Encoded {
  const walk: Walk = { what, limitBytes, containers: [], keys: [], bytes: 0, digits: 0 };
  let copy: Json | undefined;
  try {
    copy = encode(value, walk);
  } catch (error) {
    if (isA(error, PawlError)) throw error;
    // Thrown by a getter, a proxy or a toJSON method of the user.
    throw new NotSerializable(pathOf(walk), "threw when it was read", { cause: error });
  }
  const encoded = copy === undefined ? null : copy;
  const text = JSON.stringify(encoded);
  if (isLongerThan(text, limitBytes - walk.digits)) {
    throw tooLarge(walk, `${byteLength(text) + walk.digits} bytes`);
  }
  return { value: encoded, text };
}

/** The value of a stored text. `T`: what the code that wrote it promises. */
export function fromJson<T = Json>(text: string): T {
  return JSON.parse(text) as T;
}

/** The copy of one value; `undefined` for a member that JSON leaves out. */
function encode(value: unknown, walk: Walk): Json | undefined {
  switch (typeof value) {
    case "string":
      walk.bytes += value.length + 2;
      if (notStorable.test(value)) throw refusal(walk, `contains ${badCharacter(value)}`);
      return value;
    case "number":
      walk.bytes += 1;
      if (!Number.isFinite(value)) throw refusal(walk, `is ${value}, which JSON does not have`);
      if (hasExponent(value)) addDigits(value, walk);
      // There is no -0 in PostgreSQL's numeric.
      return value + 0;
    case "boolean":
      walk.bytes += 4;
      return value;
    case "undefined":
      return undefined;
    case "object":
      return value === null ? null : encodeObject(value, walk);
    case "bigint":
      throw refusal(walk, `is a BigInt (${value}n); store it as a string`);
    case "function":
    case "symbol":
    default:
      throw refusal(walk, `is a ${typeof value}`);
  }
}

/** Whether JSON writes a number with an exponent. */
function hasExponent(value: number): boolean {
  const size = Math.abs(value);
  return size >= 1e21 || (size < 1e-6 && size > 0);
}

/** Counts the digits of a number that JSON writes shorter, with an exponent: `1e+308`, `5e-324`. */
function addDigits(value: number, walk: Walk): void {
  const [mantissa = "", exponent = ""] = JSON.stringify(Math.abs(value)).split("e");
  const significant = mantissa.replace(".", "").length;
  const places = Number(exponent);
  // All places before the point, or "0.", zeros and the significant digits behind it.
  const written = places > 0 ? places + 1 : 1 - places + significant;
  const more = written - mantissa.length - 1 - exponent.length;
  walk.digits += more;
  walk.bytes += more;
  if (walk.bytes > walk.limitBytes) throw overrun(walk);
}

function encodeObject(value: object, walk: Walk): Json | undefined {
  if (Array.isArray(value)) return encodeItems(value, walk);
  if (ArrayBuffer.isView(value)) {
    throw refusal(walk, `is binary data (${className(value)}); store it as a string, for example in base64`);
  }
  return isReplaceable(value) ? encodeReplacement(value, walk) : encodeMembers(value, walk);
}

interface Replaceable {
  toJSON(key: string): unknown;
}

function isReplaceable(value: object): value is Replaceable {
  return "toJSON" in value && typeof value.toJSON === "function";
}

/**
 * Stores the result of `toJSON` in place of the object. As in JSON.stringify, its own `toJSON` is
 * ignored.
 */
function encodeReplacement(value: Replaceable, walk: Walk): Json | undefined {
  if (value instanceof Date && Number.isNaN(value.getTime())) throw refusal(walk, "is an invalid Date");
  const replacement = value.toJSON(String(walk.keys.at(-1) ?? ""));
  if (typeof replacement !== "object" || replacement === null) return encode(replacement, walk);
  return Array.isArray(replacement) ? encodeItems(replacement, walk) : encodeMembers(replacement, walk);
}

function encodeItems(items: readonly unknown[], walk: Walk): Json {
  enter(items, walk);
  const at = walk.keys.push(0) - 1;
  const copy: Json[] = [];
  for (let index = 0; index < items.length; index++) {
    walk.keys[at] = index;
    const item = encode(items[index], walk);
    if (item === undefined) throw refusal(walk, "is undefined, which an array in JSON cannot hold");
    walk.bytes += 1;
    if (walk.bytes > walk.limitBytes) throw overrun(walk);
    copy.push(item);
  }
  leave(walk);
  return copy;
}

function encodeMembers(members: object, walk: Walk): Json {
  checkClass(members, walk);
  enter(members, walk);
  const keys = sortKeys(Object.keys(members));
  const at = walk.keys.push("") - 1;
  const copy: Record<string, Json> = {};
  for (const key of keys) {
    walk.keys[at] = key;
    const member = encode(Reflect.get(members, key), walk);
    if (member === undefined) continue;
    if (notStorable.test(key)) throw refusal(walk, `has ${badCharacter(key)} in its name`);
    walk.bytes += key.length + 4;
    if (walk.bytes > walk.limitBytes) throw overrun(walk);
    if (key === "__proto__") setPrototypeKey(copy, member);
    else copy[key] = member;
  }
  leave(walk);
  return copy;
}

/** An assignment would set the prototype instead. */
function setPrototypeKey(copy: Record<string, Json>, value: Json): void {
  Object.defineProperty(copy, "__proto__", { value, enumerable: true, configurable: true, writable: true });
}

/**
 * Instances of classes are stored as their members. Map, Set, RegExp, Error, Promise and boxed
 * primitives keep their contents elsewhere and would become `{}`. Their tags tell them apart.
 */
function checkClass(value: object, walk: Walk): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const tag = Object.prototype.toString.call(value);
    if (tag !== "[object Object]") {
      throw refusal(
        walk,
        `is of class ${tag.slice(8, -1)}, which JSON cannot represent; store plain data instead`,
      );
    }
  }
  for (const symbol of Object.getOwnPropertySymbols(value)) {
    if (Object.prototype.propertyIsEnumerable.call(value, symbol)) {
      throw refusal(walk, `has a symbol as a key, ${String(symbol)}`);
    }
  }
}

function enter(container: object, walk: Walk): void {
  walk.bytes += 1;
  if (walk.containers.push(container) <= maxDepth) return;
  throw circular(walk) ?? refusal(walk, `is nested more than ${maxDepth} levels deep`);
}

function leave(walk: Walk): void {
  walk.containers.pop();
  walk.keys.pop();
}

/**
 * Sorts keys as jsonb does. Insertion sort in place: keys are few, or sorted because they come from
 * jsonb.
 */
function sortKeys(keys: string[]): string[] {
  if (keys.length > 32) return keys.toSorted(compareKeys);
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index]!;
    let place = index;
    for (; place > 0 && compareKeys(keys[place - 1]!, key) > 0; place--) keys[place] = keys[place - 1]!;
    keys[place] = key;
  }
  return keys;
}

function compareKeys(left: string, right: string): number {
  if (notAscii.test(left) || notAscii.test(right)) return compareBytes(toBytes(left), toBytes(right));
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : left > right ? 1 : 0;
}

function compareBytes(left: Uint8Array, right: Uint8Array): number {
  if (left.length !== right.length) return left.length - right.length;
  const differs = left.findIndex((byte, index) => byte !== right[index]);
  return differs === -1 ? 0 : left[differs]! - right[differs]!;
}

function refusal(walk: Walk, problem: string): NotSerializable {
  return new NotSerializable(pathOf(walk), problem);
}

/** Called only when the walk is too deep or too long, as it is for every circular value. */
function circular({ containers, keys, what }: Walk): NotSerializable | undefined {
  const again = containers.findIndex((container, index) => containers.indexOf(container) < index);
  if (again === -1) return undefined;
  const first = pathOf({ what, keys: keys.slice(0, containers.indexOf(containers[again]!)) });
  return new NotSerializable(
    pathOf({ what, keys: keys.slice(0, again) }),
    `is circular: it is ${first} again`,
  );
}

function overrun(walk: Walk): PawlError {
  return circular(walk) ?? tooLarge(walk, `at least ${walk.bytes} bytes`);
}

function tooLarge({ what, limitBytes, digits }: Walk, size: string): PayloadTooLarge {
  const why = digits === 0 ? "" : ", since numbers such as 1e308 are stored with all their digits";
  return new PayloadTooLarge(`${what} is ${size} long as JSON${why}; the limit is ${limitBytes} bytes`);
}

/** `state.items[3].price` */
function pathOf({ what, keys }: Pick<Walk, "what" | "keys">): string {
  return what + keys.map(pathSegment).join("");
}

function badCharacter(text: string): string {
  return text.includes("\0") ? "the character \\u0000" : "half of a surrogate pair";
}
