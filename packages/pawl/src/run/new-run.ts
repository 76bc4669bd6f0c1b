/**
 * Turns the arguments of `start`, `startMany` or `child` into a `NewRun` for the store: checks the
 * options, applies the schema and encodes the input, before anything is written. Called by the
 * client, and for children when a machine or a workflow starts them.
 */

import { toBytes } from "../values/bytes.js";
import { type AnyDefinition, isDefinition } from "../define/definition.js";
import { toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { toJson, type Encoded } from "../values/json.js";
import { checkName, checkStepName, checkVersion } from "../values/names.js";
import { checkInteger, checkOneOf, checkOptions, checkString, suggest } from "../values/options.js";
import type { Phase } from "../values/phase.js";
import { checkRateLimit, limitText, type Tokens } from "../define/rate-limit.js";
import { checkFreeKey } from "../define/schedule-key.js";
import { checkStable, parse, type Schema } from "../define/schema.js";
import { show } from "../values/show.js";
import type { NewRun } from "../store/store.js";
import { checkRareOptions, rareOptionNames } from "./rare-options.js";

const names = [
  "queue",
  "priority",
  "partitionKey",
  "rateLimit",
  "weight",
  "delay",
  "at",
  "uniqueKey",
  "uniqueScope",
  "idempotencyKey",
  "retention",
  "step",
  "version",
  ...rareOptionNames,
] as const;

const phases = [
  "runnable",
  "executing",
  "awaiting_signal",
  "awaiting_children",
  "done",
  "failed",
  "cancelled",
] as const;

interface NewRunOptions {
  readonly what?: string;
  readonly maxBytes: number;
  readonly of?: string;
  readonly kind?: AnyDefinition["kind"] | undefined;
}

/** Schemas that are known to accept their own output. */
const stable = new WeakSet<Schema>();

/**
 * The run for these arguments. In errors, `what` names the input and `of` the call. `kind` is the
 * kind of a definition that only the caller knows, in the version it gives.
 */
export async function newRun(
  target: AnyDefinition | string,
  input: unknown,
  options: unknown,
  { what = "input", maxBytes, of = "start", kind }: NewRunOptions,
): Promise<NewRun> {
  const given = checkOptions(options, names, `the options of ${of}`);
  const definition = checkTarget(target);
  if (given.delay !== undefined && given.at !== undefined) {
    throw new InvalidOption(`${of} takes delay or at, not both`);
  }
  if (given.uniqueScope !== undefined && given.uniqueKey === undefined) {
    throw new InvalidOption(`uniqueScope needs uniqueKey (the options of ${of})`);
  }
  if (given.version !== undefined && definition !== undefined) {
    throw new InvalidOption(
      `version is for starts by name; the definition ${definition.name} has version ${definition.version}`,
    );
  }
  const encoded = encodeInput(definition, input, what, maxBytes);
  const { text } = encoded instanceof Promise ? await encoded : encoded;
  return {
    name: definition?.name ?? (target as string),
    version: definition?.version ?? (given.version === undefined ? null : checkVersion(given.version)),
    kind: definition?.kind ?? (given.version === undefined ? null : (kind ?? null)),
    queue: given.queue === undefined ? (definition?.queue ?? null) : checkName("queue", given.queue),
    priority: given.priority === undefined ? (definition?.priority ?? null) : checkPriority(given.priority),
    retentionMs:
      given.retention === undefined
        ? (definition?.retentionMs ?? null)
        : toMilliseconds(given.retention, "retention"),
    input: text,
    step: given.step === undefined ? null : checkFirstStep(definition, given.step),
    delayMs: given.delay === undefined ? null : toMilliseconds(given.delay, "delay"),
    at: given.at === undefined ? null : checkDate(given.at, "at"),
    idempotencyKey:
      given.idempotencyKey === undefined
        ? null
        : checkFreeKey(checkString(given.idempotencyKey, "idempotencyKey", { maxBytes: 512 })),
    uniqueKey: given.uniqueKey === undefined ? null : checkUniqueKey(given.uniqueKey),
    uniqueScope: given.uniqueScope === undefined ? null : checkScope(given.uniqueScope),
    partitionKey:
      given.partitionKey === undefined
        ? null
        : checkString(given.partitionKey, "partitionKey", { maxBytes: 512 }),
    ...limitColumns(checkRateLimit(given.rateLimit, given.weight)),
    trace: null,
    direct: false,
    options: checkRareOptions(given, { of, timeoutMs: definition?.timeoutMs ?? null }),
  };
}

/** A rate limit as it is stored. */
export function limitColumns(tokens: Tokens | null): { rateLimit: string | null; weight: number | null } {
  if (tokens === null) return { rateLimit: null, weight: null };
  return { rateLimit: limitText(tokens), weight: tokens.weight };
}

/** A point in time: a Date, or a text that a Date can parse. */
export function checkDate(value: unknown, what: string): Date {
  const date =
    value instanceof Date ? value : typeof value === "string" ? new Date(value) : new Date(Number.NaN);
  const year = date.getUTCFullYear();
  if (year >= 1 && year <= 9999) return date;
  throw new InvalidOption(
    `${what} must be a Date or an ISO 8601 text such as "2030-01-31T12:00:00Z", not ${show(value)}`,
  );
}

/** One of the phases of a run. */
export function checkPhase(value: unknown, what: string): Phase {
  return checkOneOf(value, what, phases);
}

function checkTarget(target: unknown): AnyDefinition | undefined {
  if (isDefinition(target)) return target;
  if (typeof target === "string") {
    checkName("definition", target);
    return undefined;
  }
  throw new InvalidOption(
    `start takes a definition made by job(…), machine(…) or workflow(…), or its name, not ${show(target)}`,
  );
}

function encodeInput(
  definition: AnyDefinition | undefined,
  input: unknown,
  what: string,
  maxBytes: number,
): Encoded | Promise<Encoded> {
  const schema = definition?.kind === "machine" ? definition.state : definition?.input;
  if (schema === undefined) return toJson(input, what, maxBytes);
  if (!stable.has(schema)) return encodeFirst(schema, input, what, maxBytes);
  const parsed = parse(schema, input, "InvalidInput", what);
  return parsed instanceof Promise
    ? parsed.then((value: unknown) => toJson(value, what, maxBytes))
    : toJson(parsed, what, maxBytes);
}

/** The first start checks that the schema accepts its own output. */
async function encodeFirst(schema: Schema, input: unknown, what: string, maxBytes: number): Promise<Encoded> {
  const encoded = await checkStable(schema, input, what, maxBytes);
  stable.add(schema);
  return encoded;
}

function checkPriority(value: unknown): number {
  return checkInteger(value, "priority", { min: -32_768, max: 32_767 });
}

function checkFirstStep(definition: AnyDefinition | undefined, value: unknown): string {
  const step = checkStepName(value);
  if (definition === undefined) return step;
  if (definition.kind !== "machine") {
    throw new InvalidOption(`step is for machines, and ${definition.name} is a ${definition.kind}`);
  }
  if (definition.steps.has(step)) return step;
  const known = [...definition.steps.keys()];
  throw new InvalidOption(
    `${definition.name} has no step "${step}" (its steps are ${known.join(", ")})${suggest(step, known)}`,
  );
}

/** Bytes, or a text in UTF-8. */
export function checkUniqueKey(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) {
    if (value.length > 0 && value.length <= 512) return value;
    throw new InvalidOption(`uniqueKey must be 1 to 512 bytes long, not ${value.length}`);
  }
  return toBytes(checkString(value, "uniqueKey", { maxBytes: 512 }));
}

function checkScope(value: unknown): Phase[] {
  if (Array.isArray(value) && value.length > 0) return value.map((phase) => checkPhase(phase, "uniqueScope"));
  throw new InvalidOption(
    `uniqueScope must be a list of phases, at least one of ${phases.join(", ")}; not ${show(value)}`,
  );
}
