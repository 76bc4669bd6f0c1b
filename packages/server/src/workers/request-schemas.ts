/**
 * The requests of the worker protocol as schemas (`answer-schemas.ts` has the answers). Values
 * (states, results, inputs) are JSON texts, as the library encodes them; ids are decimal texts. A
 * schema with a title becomes a named component of the OpenAPI document.
 */

import { type TSchema, Type } from "typebox";
import { declaredSchema, nullable, strict } from "../http/schemas.js";

/** One of several objects; the value of one member says which. */
export function oneOfKinds<Schemas extends TSchema[]>(
  member: string,
  schemas: [...Schemas],
  options: { readonly title: string; readonly description: string },
) {
  const mapping = Object.fromEntries(
    (schemas as { title?: string; properties?: Record<string, { const?: string }> }[]).map((schema) => [
      schema.properties?.[member]?.const,
      `#/components/schemas/${schema.title}`,
    ]),
  );
  return Type.Union(schemas, { ...options, discriminator: { propertyName: member, mapping } });
}

const maxInt = 2_147_483_647;
const maxMs = 36_525 * 86_400_000;

/** A positive number of at most 63 bits, in decimal. */
export const id = Type.String({
  pattern: "^([1-9][0-9]{0,17}|[1-8][0-9]{18})$",
  description: "A number from 1 to 8,999,999,999,999,999,999, as text",
});
export const shortName = Type.String({
  // Names that begin with pawl- are reserved for the engine.
  pattern: "^(?!pawl-)[a-z0-9][a-z0-9_-]{0,47}$",
  minLength: 1,
  maxLength: 48,
});
export const version = Type.Integer({ minimum: 1, maximum: maxInt });
export const workerId = Type.String({ pattern: "^[\\x21-\\x7e]{1,128}$", minLength: 1, maxLength: 128 });
export const int = Type.Integer({ minimum: 0, maximum: maxInt });
export const longName = Type.String({ pattern: "^[a-zA-Z0-9._-]{1,128}$", minLength: 1, maxLength: 128 });
const awaited = Type.String({
  description: "The name of a signal, or ~ and the id of an invoked run, to wait for its end",
  pattern: "^(~[0-9]{1,19}|[a-zA-Z0-9._-]{1,128})$",
  minLength: 1,
  maxLength: 128,
});
export const priority = Type.Integer({ minimum: -32_768, maximum: 32_767 });
const kind = Type.Enum(["job", "machine", "workflow"]);
const ms = Type.Number({ minimum: 0, maximum: maxMs, description: "Milliseconds" });
const key = Type.String({ minLength: 1, maxLength: 512, pattern: "^[^\\0]*$" });
const json = Type.String({ pattern: "^[^\\0]*$", description: "JSON as text" });
const errorJson = Type.String({
  pattern: "^[^\\0]*$",
  description: "An ErrorRecord as JSON text: at least name and message",
});
const limitName = Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,47}(:[^\\0]{1,256})?$", maxLength: 400 });
const traceparent = Type.String({
  pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
  description: "As the header traceparent",
});
const seqs = (description: string) => Type.Array(int, { maxItems: 10_000, description });
const consumed = seqs(
  "The seq of every signal that the step saw as awaited (matched): the commit removes them from the inbox",
);
const date = Type.String({
  pattern: "^[0-9]{4}-",
  maxLength: 40,
  description: "A time as the server writes it, or ISO 8601",
});

export const definition = strict(
  {
    name: shortName,
    version,
    kind,
    queue: shortName,
    priority,
    retentionMs: ms,
    timeoutMs: Type.Optional(nullable(Type.Number({ minimum: 1, maximum: maxMs }))),
    declared: Type.Optional(declaredSchema),
  },
  { title: "ServedDefinition", description: "With the defaults for starts by name" },
);

export const heldClaim = strict({ runId: id, claimId: id }, { title: "Claim" });

const rareOptions = strict(
  {
    tags: Type.Optional(
      Type.Record(longName, Type.String({ maxLength: 256, pattern: "^[^\\0]*$" }), {
        maxProperties: 16,
        description: "Missing: the tags of the parent",
      }),
    ),
    timeoutMs: Type.Optional(Type.Number({ minimum: 1, maximum: maxMs })),
    correlationKey: Type.Optional(key),
    concurrency: Type.Optional(limitName),
  },
  { title: "RareOptions", description: "Options that few runs have; leave out what is not given" },
);

export const newRun = strict(
  {
    name: shortName,
    version: nullable(version),
    kind: nullable(kind),
    queue: nullable(shortName),
    priority: nullable(priority),
    input: json,
    step: nullable(longName),
    delayMs: nullable(ms),
    at: nullable(date),
    retentionMs: nullable(ms),
    idempotencyKey: nullable(key),
    uniqueKeyBase64: nullable(Type.String({ pattern: "^[A-Za-z0-9+/]+={0,2}$", maxLength: 700 })),
    uniqueScope: nullable(
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
    partitionKey: nullable(key),
    rateLimit: nullable(limitName),
    weight: nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    trace: Type.Optional(nullable(traceparent)),
    options: Type.Optional(nullable(rareOptions)),
  },
  {
    title: "NewRun",
    description:
      "A run to start. null: not given. Version, kind, queue, priority and retentionMs then come from the " +
      "registered definition. step: begin a machine at this step",
  },
);

const state = Type.Union([json, Type.Null()], {
  description: "The new state as JSON text; null keeps the stored one",
});
const step = longName;
const machineStep = nullable(step);

export const transition = oneOfKinds(
  "kind",
  [
    strict(
      { kind: Type.Literal("keep"), step, state, consumed },
      {
        title: "KeepTransition",
        description: "Machines: go to this step and keep the claim, to execute it at once",
      },
    ),
    strict(
      {
        kind: Type.Literal("next"),
        step,
        state,
        priority: nullable(priority),
        partitionKey: Type.Optional(nullable(key)),
        rateLimit: nullable(limitName),
        weight: nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
        concurrency: Type.Optional(nullable(limitName)),
        consumed,
      },
      {
        title: "NextTransition",
        description:
          "Machines: go to this step; the claim ends, and any worker may go on. Without partitionKey the run " +
          "keeps its key, null drops it; so with concurrency. priority null keeps the present priority",
      },
    ),
    strict(
      {
        kind: Type.Literal("retry"),
        step: machineStep,
        state,
        delayMs: ms,
        error: nullable(errorJson),
      },
      {
        title: "RetryTransition",
        description:
          "The same step again after delayMs, attempt + 1; inbox, timedOut and children stay. Jobs: step and state are null",
      },
    ),
    strict(
      {
        kind: Type.Literal("await"),
        step,
        state,
        names: Type.Array(longName, { minItems: 1, maxItems: 100 }),
        match: nullable(json),
        delayMs: Type.Union([ms, Type.Null()], { description: "The timeout; null: none" }),
        shown: seqs("The seq of every signal that the step saw as awaited: these do not end the wait"),
      },
      {
        title: "AwaitTransition",
        description:
          "Machines: wait; this step runs when a signal with one of these names arrives whose payload contains match, or after the timeout",
      },
    ),
    strict(
      {
        kind: Type.Literal("spawn"),
        step,
        state,
        children: Type.Array(newRun, { maxItems: 10_000 }),
        consumed,
      },
      {
        title: "SpawnTransition",
        description: "Machines: start the children and wait; this step runs when all of them have ended",
      },
    ),
    strict(
      {
        kind: Type.Literal("suspend"),
        names: Type.Array(awaited, { maxItems: 10_000 }),
        matches: Type.Record(Type.String(), json, {
          description: "By signal name: the JSON text that the payload must contain",
        }),
        after: Type.Integer({
          minimum: 0,
          maximum: maxInt,
          description:
            "The lowest inboxSeq of the pending verdicts for these waits: later signals wake the run",
        }),
        dueAt: Type.Union([date, Type.Null()], {
          description: "The earliest dueAt of the waits, exactly as the server sent it; null: none",
        }),
        steps: Type.Array(longName, { maxItems: 10_000, description: "The names of the steps that wait" }),
      },
      {
        title: "SuspendTransition",
        description: "Workflows: wait until one of the recorded waits may be over; then the body runs again",
      },
    ),
    strict(
      { kind: Type.Literal("done"), step: machineStep, result: json },
      { title: "DoneTransition", description: "The run is done. step: the last step of a machine" },
    ),
    strict(
      { kind: Type.Literal("stop"), step: machineStep, error: errorJson },
      { title: "StopTransition", description: "The run has failed. step: the step that failed" },
    ),
  ],
  { title: "Transition", description: "What a step's outcome does to its run" },
);

const completed = {
  attempt: Type.Integer({
    minimum: 0,
    maximum: maxInt,
    description: "How often the step failed before: 0 the first time",
  }),
  output: Type.Union([json, Type.Null()], {
    description: "The value that the step returned; null if it failed",
  }),
  error: Type.Union([errorJson, Type.Null()], {
    description: "Why it failed for good; null if it succeeded",
  }),
  tookMs: Type.Number({ minimum: 0, maximum: maxMs }),
};

export const change = oneOfKinds(
  "op",
  [
    strict(
      { op: Type.Literal("run"), ...completed },
      { title: "RunChange", description: "A function step has ended" },
    ),
    strict(
      { op: Type.Literal("transaction"), ...completed },
      {
        title: "TransactionChange",
        description: "The same for a transaction step; remote workers have none",
      },
    ),
    strict(
      {
        op: Type.Literal("retry"),
        kind: Type.Enum(["run", "transaction"]),
        attempt: Type.Integer({
          minimum: 0,
          maximum: maxInt,
          description: "How often it has failed by now: 1 the first time",
        }),
        error: errorJson,
        delayMs: ms,
      },
      { title: "RetryChange", description: "A step has failed: retry it after delayMs" },
    ),
    strict({ op: Type.Literal("due") }, { title: "DueChange", description: "Ask whether the retry is due" }),
    strict(
      { op: Type.Literal("sleep"), delayMs: nullable(ms), at: nullable(date) },
      { title: "SleepChange", description: "Begin a sleep, or ask whether it is over" },
    ),
    strict(
      { op: Type.Literal("wait"), event: longName, match: nullable(json), delayMs: nullable(ms) },
      { title: "WaitChange", description: "Begin to wait for a signal, or ask whether it has arrived" },
    ),
    strict(
      { op: Type.Literal("invoke"), child: newRun },
      { title: "InvokeChange", description: "Start a run, or ask whether it has ended" },
    ),
  ],
  {
    title: "JournalChange",
    description: "What to record about a step. Send sleep, wait and invoke again to ask about them",
  },
);

export const commit = strict(
  {
    runId: id,
    queue: Type.Optional(shortName),
    claimId: id,
    turn: Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "0 after the claim, one more after each transition of this claim",
    }),
    inboxSeq: Type.Integer({
      minimum: 0,
      maximum: maxInt,
      description:
        "The seq of the last signal that you have read: inboxSeq of the claimed run, or of a later verdict",
    }),
    parentId: Type.Union([id, Type.Null()], { description: "Copy it from the claimed run" }),
    partitionKey: Type.Union([key, Type.Null()], { description: "Copy it from the claimed run" }),
    next: Type.Union([strict({ workerId, claimId: id }), Type.Null()], {
      description:
        "If this commit ends the claim and frees a partition key: claim the next run of the key with this new claimId. null: do not",
    }),
    transition,
  },
  { title: "Commit" },
);

export const entry = strict(
  {
    runId: id,
    claimId: id,
    name: Type.String({ ...longName, description: "The name of the step" }),
    seq: Type.Integer({
      minimum: 0,
      maximum: maxInt,
      description: "One more than the highest seq in the journal: the position in the order of replay",
    }),
    inboxSeq: Type.Integer({
      minimum: 0,
      maximum: maxInt,
      description: "The seq of the last signal that you know of",
    }),
    change,
  },
  { title: "JournalEntry" },
);
