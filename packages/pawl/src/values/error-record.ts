/**
 * Turns a thrown value, or the reason of a stop, into the record that is stored with the run and
 * shown by the client. It never throws, even if a getter of the value does. The record is JSON that
 * PostgreSQL accepts: at most 8 KiB without its stacks, and at most 8 KiB of stacks, those of the
 * causes included. Called by the engine when a step, a job or a workflow fails.
 */

import { byteLength } from "./bytes.js";
import { Unavailable } from "./errors.js";
import { isObject } from "./options.js";
import { show, shorten } from "./show.js";
import { cutStack, framesOf, userStack } from "./stack.js";

/** An error as Pawl stores and shows it. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** The step that failed. */
  readonly step?: string;
  /**
   * The first line of the message, and the frames without those of Pawl. Missing if the error has
   * none, or the worker was told not to record stacks (`recordStacks`).
   */
  readonly stack?: string | null;
  readonly cause?: ErrorRecord;
}

const bounds = { bytes: 8192, stackBytes: 8192, causes: 5, nameCharacters: 100, listed: 3 };
const cutNote = "… (cut to fit)";

/** The record of a thrown value. */
export function describeError(thrown: unknown, step?: string): ErrorRecord {
  return fit({ ...describe(thrown, 0), ...(step === undefined ? {} : { step: clean(step) }) });
}

/** The record of an error thrown while another was handled. The earlier one becomes its cause. */
export function describeBoth(later: unknown, earlier: unknown, step?: string): ErrorRecord {
  const { cause: _own, ...record } = describe(later, 0);
  const where = step === undefined ? {} : { step: clean(step) };
  return fit({ ...record, ...where, cause: describe(earlier, 1) });
}

/**
 * The record of the reason given to `ctx.stop`. A reason that is not an error becomes the message.
 */
export function describeStop(reason: unknown, step?: string): ErrorRecord {
  if (isErrorLike(reason)) return describeError(reason, step);
  return describeError({ name: "Stopped", message: stopMessage(reason) }, step);
}

function stopMessage(reason: unknown): string {
  if (typeof reason === "string") return reason;
  if (reason === undefined) return "stopped without a reason";
  try {
    return JSON.stringify(reason) ?? show(reason);
  } catch {
    return show(reason);
  }
}

function describe(thrown: unknown, depth: number): ErrorRecord {
  if (!isErrorLike(thrown)) return { name: "Error", message: clean(messageOfOther(thrown)) };
  const name = text(read(thrown, "name")) ?? "Error";
  const code = text(read(thrown, "code"));
  const errors = read(thrown, "errors");
  const list = isList(errors) ? errors : [];
  const message = text(read(thrown, "message")) ?? "";
  // Left out: the cause of an outage is the driver's error, which names the database's address.
  const cause = isA(thrown, Unavailable) ? undefined : (read(thrown, "cause") ?? list[0]);
  const stack = userStack(read(thrown, "stack"), name, message);
  return {
    name: shorten(clean(name), bounds.nameCharacters),
    message: clean(list.length === 0 ? message : withListed(message, list)),
    ...(code === undefined ? {} : { code: shorten(clean(code), bounds.nameCharacters) }),
    ...(stack === undefined ? {} : { stack: cleanText(stack) }),
    ...(cause === undefined || cause === null || depth + 1 >= bounds.causes
      ? {}
      : { cause: describe(cause, depth + 1) }),
  };
}

/** An AggregateError often has no message of its own, so its first members go into the message. */
function withListed(message: string, errors: readonly unknown[]): string {
  const listed = Array.from({ length: Math.min(errors.length, bounds.listed) }, (_, index) => {
    const error = read(errors, index);
    return shorten(isErrorLike(error) ? (text(read(error, "message")) ?? "") : show(error), 500);
  });
  if (errors.length > listed.length) listed.push("…");
  return `${message === "" ? "several errors" : message} (${errors.length}: ${listed.join("; ")})`;
}

function messageOfOther(thrown: unknown): string {
  return typeof thrown === "string"
    ? thrown
    : `a value that is not an Error was thrown: ${show(thrown, 2000)}`;
}

/** An Error of any realm, or an object shaped like one. Never throws. */
function isErrorLike(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  return typeof read(value, "message") === "string" || isA(value, Error);
}

/** `instanceof` that never throws, even for a proxy that user code threw. */
export function isA<T>(value: unknown, kind: abstract new (...given: never[]) => T): value is T {
  try {
    return value instanceof kind;
  } catch {
    return false;
  }
}

function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value) && value.length > 0;
  } catch {
    return false;
  }
}

/** Reads a member of an object whose getters may throw. */
function read(from: object, key: string | number): unknown {
  try {
    return Reflect.get(from, key);
  } catch {
    return undefined;
  }
}

function text(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  return typeof value === "number" ? String(value) : undefined;
}

function clean(value: string): string {
  return cleanText(shorten(value, bounds.bytes));
}

/** Replaces NUL and lone surrogates, which PostgreSQL cannot store. */
function cleanText(value: string): string {
  return value.replaceAll(/[\0\p{Surrogate}]/gu, "\ufffd");
}

/**
 * Cuts the messages until the record fits: each takes at most half of the bytes left for it and its
 * causes. The stacks share bytes of their own.
 */
function fit(record: ErrorRecord): ErrorRecord {
  const bare = withoutStacks(record);
  const fitting = encodedBytes(bare) <= bounds.bytes ? bare : cut(bare, bounds.bytes);
  return withStacks(fitting, stacksOf(record), bounds.stackBytes);
}

/** The same record, and its causes, without stacks. */
function withoutStacks({ stack: _stack, cause, ...record }: ErrorRecord): ErrorRecord {
  return cause === undefined ? record : { ...record, cause: withoutStacks(cause) };
}

/** The same for a record as JSON. */
export function withoutStacksText(json: string): string {
  return JSON.stringify(withoutStacks(JSON.parse(json) as ErrorRecord));
}

/** The stacks of a record and its causes, from the outside in. */
function stacksOf({ stack, cause }: ErrorRecord): (string | undefined)[] {
  return [stack ?? undefined, ...(cause === undefined ? [] : stacksOf(cause))];
}

/** Each stack gets an equal share of the bytes that those before it left. */
function withStacks(
  { cause, ...record }: ErrorRecord,
  [given, ...others]: readonly (string | undefined)[],
  bytes: number,
): ErrorRecord {
  const sharers = 1 + others.filter((other) => other !== undefined).length;
  const share = Math.floor(bytes / sharers);
  const stack = given === undefined ? undefined : cutStack(given, share);
  const left = bytes - (stack === undefined ? 0 : encodedBytes(stack));
  return {
    ...record,
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined ? {} : { cause: withStacks(cause, others, left) }),
  };
}

function cut(record: ErrorRecord, bytes: number): ErrorRecord {
  const { cause, ...own } = record;
  const frame = encodedBytes({ ...own, message: "" }) + '"cause":,'.length;
  const forMessage = Math.floor((bytes - frame) / (cause === undefined ? 1 : 2));
  const message = cutText(own.message, forMessage);
  if (cause === undefined) return { ...own, message };
  const left = bytes - frame - encodedBytes(message);
  return { ...own, message, cause: cut(cause, left) };
}

/** The longest beginning of `value` that is at most `bytes` long once encoded. */
function cutText(value: string, bytes: number): string {
  if (encodedBytes(value) <= bytes) return value;
  let left = bytes - encodedBytes(cutNote);
  let kept = "";
  for (const character of value) {
    left -= encodedBytes(character) - 2;
    if (left < 0) break;
    kept += character;
  }
  return kept + cutNote;
}

function encodedBytes(value: unknown): number {
  return byteLength(JSON.stringify(value));
}

/** A stored error record that was read back from JSON; anything else becomes a record with `message`. */
export function readErrorRecord(json: unknown, message = "no error was recorded"): ErrorRecord {
  if (!isObject(json)) return { name: "Error", message };
  const { code, step, stack, cause } = json;
  return {
    name: typeof json["name"] === "string" ? json["name"] : "Error",
    message: typeof json["message"] === "string" ? json["message"] : message,
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof step === "string" ? { step } : {}),
    ...(typeof stack === "string" || stack === null ? { stack } : {}),
    ...(isObject(cause) ? { cause: readErrorRecord(cause, "") } : {}),
  };
}

/** A record as people read it: name and message, the frames, and then each cause. */
export function errorLines({ name, message, code, stack, cause }: ErrorRecord): string[] {
  const isCoded = code !== undefined && code !== name;
  return [
    ...`${name}${isCoded ? ` (${code})` : ""}: ${message}`.split("\n"),
    ...stackLines(stack ?? ""),
    ...(cause === undefined
      ? []
      : errorLines(cause).map((line, index) => (index === 0 ? `caused by ${line}` : line))),
  ];
}

/** The frames of a stack; all of it if a worker in another language wrote it in another form. */
function stackLines(stack: string): string[] {
  const frames = framesOf(stack);
  return frames.length > 0 || stack === "" ? frames : stack.split("\n");
}
