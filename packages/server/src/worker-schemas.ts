/**
 * What workers send: the schemas of the worker protocol. Values (states, results, inputs) are JSON texts, as the library encodes
 * them; ids are decimal texts. What a transition or a journal entry has depends on its kind, and is checked by that alone, so that
 * a refusal names the member that is wrong.
 */

import { InvalidOption } from "pawl";
import type { JournalChange, NewRun, Transition } from "pawl/engine";
import { type Static, type TProperties, type TSchema, Type } from "typebox";
import { makeCheck } from "./validation.js";

export const strict = <Members extends TProperties>(members: Members) =>
  Type.Object(members, { additionalProperties: false });
const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

const maxInt = 2_147_483_647;
const maxMs = 36_525 * 86_400_000;

/** A positive number of at most 63 bits, in decimal. */
export const id = Type.String({
  pattern: "^([1-9][0-9]{0,17}|[1-8][0-9]{18})$",
  description: "a number, as text",
});
export const shortName = Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,47}$", minLength: 1, maxLength: 48 });
export const version = Type.Integer({ minimum: 1, maximum: maxInt });
export const workerId = Type.String({ pattern: "^[\\x21-\\x7e]{1,128}$", minLength: 1, maxLength: 128 });
export const int = Type.Integer({ minimum: 0, maximum: maxInt });
const longName = Type.String({ pattern: "^[a-zA-Z0-9._-]{1,128}$", minLength: 1, maxLength: 128 });
/** Of a signal, or of the engine's own that tells of the end of a run. */
const awaited = Type.String({
  pattern: "^(~[0-9]{1,19}|[a-zA-Z0-9._-]{1,128})$",
  minLength: 1,
  maxLength: 128,
});
const priority = Type.Integer({ minimum: -32_768, maximum: 32_767 });
const kind = Type.Enum(["job", "machine", "workflow"]);
const ms = Type.Number({ minimum: 0, maximum: maxMs });
const key = Type.String({ minLength: 1, maxLength: 512, pattern: "^[^\\0]*$" });
const json = Type.String({ pattern: "^[^\\0]*$", description: "JSON" });
const limitName = Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,47}(:[^\\0]{1,256})?$", maxLength: 400 });
const traceparent = Type.String({
  pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
  description: "as the header traceparent",
});
const seqs = Type.Array(int, { maxItems: 10_000 });
const date = Type.String({
  pattern: "^[0-9]{4}-",
  maxLength: 40,
  description: "a time as the server, or ISO 8601, writes it",
});

export const definition = strict({
  name: shortName,
  version,
  kind,
  queue: shortName,
  priority,
  retentionMs: ms,
});

export const heldClaim = strict({ runId: id, claimId: id });

const newRun = strict({
  name: shortName,
  version: orNull(version),
  kind: orNull(kind),
  queue: orNull(shortName),
  priority: orNull(priority),
  input: json,
  step: orNull(longName),
  delayMs: orNull(ms),
  at: orNull(date),
  retentionMs: orNull(ms),
  idempotencyKey: orNull(key),
  uniqueKeyBase64: orNull(Type.String({ pattern: "^[A-Za-z0-9+/]+={0,2}$", maxLength: 700 })),
  uniqueScope: orNull(
    Type.Array(
      Type.Enum([
        "runnable",
        "executing",
        "awaiting_signal",
        "awaiting_children",
        "done",
        "failed",
        "cancelled",
      ]),
      { minItems: 1, maxItems: 7 },
    ),
  ),
  partitionKey: orNull(key),
  rateLimit: orNull(limitName),
  weight: orNull(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  trace: Type.Optional(orNull(traceparent)),
});

const state = orNull(json);
const step = longName;

const transitions = {
  keep: strict({ kind: Type.Literal("keep"), step, state, consumed: seqs }),
  next: strict({
    kind: Type.Literal("next"),
    step,
    state,
    priority: orNull(priority),
    partitionKey: Type.Optional(orNull(key)),
    rateLimit: orNull(limitName),
    weight: orNull(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    consumed: seqs,
  }),
  retry: strict({
    kind: Type.Literal("retry"),
    step: orNull(step),
    state,
    delayMs: ms,
    error: orNull(json),
  }),
  suspend: strict({
    kind: Type.Literal("suspend"),
    names: Type.Array(awaited, { maxItems: 10_000 }),
    matches: Type.Record(Type.String(), json),
    after: int,
    dueAt: orNull(date),
    steps: Type.Array(longName, { maxItems: 10_000 }),
  }),
  await: strict({
    kind: Type.Literal("await"),
    step,
    state,
    names: Type.Array(longName, { minItems: 1, maxItems: 100 }),
    match: orNull(json),
    delayMs: orNull(ms),
    shown: seqs,
  }),
  spawn: strict({
    kind: Type.Literal("spawn"),
    step,
    state,
    children: Type.Array(newRun, { maxItems: 10_000 }),
    consumed: seqs,
  }),
  done: strict({ kind: Type.Literal("done"), step: orNull(step), result: json }),
  stop: strict({ kind: Type.Literal("stop"), step: orNull(step), error: json }),
};

const completed = {
  attempt: int,
  output: orNull(json),
  error: orNull(json),
  tookMs: Type.Number({ minimum: 0, maximum: maxMs }),
};

const changes = {
  run: strict({ op: Type.Literal("run"), ...completed }),
  transaction: strict({ op: Type.Literal("transaction"), ...completed }),
  retry: strict({
    op: Type.Literal("retry"),
    kind: Type.Enum(["run", "transaction"]),
    attempt: int,
    error: json,
    delayMs: ms,
  }),
  due: strict({ op: Type.Literal("due") }),
  sleep: strict({ op: Type.Literal("sleep"), delayMs: orNull(ms), at: orNull(date) }),
  wait: strict({ op: Type.Literal("wait"), event: longName, match: orNull(json), delayMs: orNull(ms) }),
  invoke: strict({ op: Type.Literal("invoke"), child: newRun }),
};

/** What depends on the kind is checked by `toTransition`. */
const byKind = (names: readonly string[], member: string) =>
  Type.Object({ [member]: Type.Enum([...names]) }, { additionalProperties: true });

export const commit = strict({
  runId: id,
  queue: Type.Optional(shortName),
  claimId: id,
  turn: int,
  inboxSeq: int,
  parentId: orNull(id),
  partitionKey: orNull(key),
  next: orNull(strict({ workerId, claimId: id })),
  transition: byKind(Object.keys(transitions), "kind"),
});

export const entry = strict({
  runId: id,
  claimId: id,
  name: longName,
  seq: int,
  inboxSeq: int,
  change: byKind(Object.keys(changes), "op"),
});

const checksOf = (
  schemas: Readonly<Record<string, TSchema>>,
): ReadonlyMap<string, ReturnType<typeof makeCheck>> =>
  new Map(Object.entries(schemas).map(([name, schema]) => [name, makeCheck(schema)]));
const transitionChecks = checksOf(transitions);
const changeChecks = checksOf(changes);

type SentRun = Static<typeof newRun>;

/** The transition that was sent; throws what is wrong with it. */
export function toTransition(sent: unknown, where: string): Transition {
  const { kind: given } = sent as { kind: Transition["kind"] };
  transitionChecks.get(given)!(sent, where);
  const transition = sent as Transition;
  switch (transition.kind) {
    case "await":
      checkJson(transition.match, `${where}.match`);
      return transition;
    case "suspend":
      for (const [name, match] of Object.entries(transition.matches))
        checkJson(match, `${where}.matches.${name}`);
      return transition;
    case "spawn":
      return {
        ...transition,
        children: transition.children.map((child) => toNewRun(child as unknown as SentRun)),
      };
    case "keep":
    case "next":
    case "retry":
    case "done":
    case "stop":
      return transition;
  }
}

/** The journal entry that was sent; throws what is wrong with it. */
export function toChange(sent: unknown, where: string): JournalChange {
  const { op } = sent as { op: JournalChange["op"] };
  changeChecks.get(op)!(sent, where);
  const change = sent as JournalChange;
  switch (change.op) {
    case "sleep":
      return { ...change, at: toDate(change.at as unknown as string | null, `${where}.at`) };
    case "wait":
      checkJson(change.match, `${where}.match`);
      return change;
    case "invoke":
      return { ...change, child: toNewRun(change.child as unknown as SentRun) };
    case "run":
    case "transaction":
    case "retry":
    case "due":
      return change;
  }
}

function toNewRun({ at, uniqueKeyBase64, trace = null, ...run }: SentRun): NewRun {
  return {
    ...run,
    trace,
    at: toDate(at, "at"),
    uniqueKey: uniqueKeyBase64 === null ? null : Buffer.from(uniqueKeyBase64, "base64"),
    direct: false,
  };
}

function toDate(text: string | null, where: string): Date | null {
  if (text === null) return null;
  const read = new Date(text);
  if (!Number.isNaN(read.getTime())) return read;
  throw new InvalidOption(`${where} must be a time such as "2030-01-31T12:00:00Z"`);
}

/** It becomes a part of a larger JSON text. */
function checkJson(text: string | null, where: string): void {
  if (text === null) return;
  try {
    JSON.parse(text);
  } catch {
    throw new InvalidOption(`${where} must be JSON`);
  }
}
