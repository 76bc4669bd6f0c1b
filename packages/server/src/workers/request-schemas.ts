/**
 * What workers send: the schemas of the worker protocol (`worker-answers.ts` has what they get). Values
 * (states, results, inputs) are JSON texts, as the library encodes them; ids are decimal texts. A
 * schema with a title is a named component of the OpenAPI document.
 */

import { type TSchema, Type } from "typebox";
import { strict } from "../http/schemas.js";

export const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** One of several objects, told apart by a member that each has with a value of its own. */
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
  // Names that begin with pawl- are the engine's own.
  pattern: "^(?!pawl-)[a-z0-9][a-z0-9_-]{0,47}$",
  minLength: 1,
  maxLength: 48,
});
export const version = Type.Integer({ minimum: 1, maximum: maxInt });
export const workerId = Type.String({ pattern: "^[\\x21-\\x7e]{1,128}$", minLength: 1, maxLength: 128 });
export const int = Type.Integer({ minimum: 0, maximum: maxInt });
export const longName = Type.String({ pattern: "^[a-zA-Z0-9._-]{1,128}$", minLength: 1, maxLength: 128 });
const awaited = Type.String({
  description: "The name of a signal, or ~ and the id of an invoked run, whose end is awaited",
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
const consumed = seqs("The seq of every signal that the step saw as awaited (matched): they leave the inbox");
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
  },
  { title: "ServedDefinition", description: "With the defaults that a start by name takes" },
);

export const heldClaim = strict({ runId: id, claimId: id }, { title: "Claim" });

export const newRun = strict(
  {
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
  },
  {
    title: "NewRun",
    description:
      "A run to start. null: not given. Version, kind, queue, priority and retentionMs then come from the " +
      "definition as it is registered. step: the first step of a machine, if not its own",
  },
);

const state = Type.Union([json, Type.Null()], {
  description: "The new state as JSON text; null leaves the stored one as it is",
});
const step = longName;
const machineStep = orNull(step);

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
        priority: orNull(priority),
        partitionKey: Type.Optional(orNull(key)),
        rateLimit: orNull(limitName),
        weight: orNull(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
        consumed,
      },
      {
        title: "NextTransition",
        description:
          "Machines: go to this step; the claim ends, and any worker may go on. Without partitionKey the run " +
          "keeps its key, null drops it; priority null keeps the present one",
      },
    ),
    strict(
      {
        kind: Type.Literal("retry"),
        step: machineStep,
        state,
        delayMs: ms,
        error: orNull(errorJson),
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
        match: orNull(json),
        delayMs: Type.Union([ms, Type.Null()], { description: "The timeout; null: none" }),
        shown: seqs("The seq of every signal that the step saw as awaited: they do not end this wait again"),
      },
      {
        title: "AwaitTransition",
        description:
          "Machines: park; this step runs when a signal of these names comes whose payload contains match, or after the timeout",
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
        description: "Machines: start the children and park; this step runs when all of them have ended",
      },
    ),
    strict(
      {
        kind: Type.Literal("suspend"),
        names: Type.Array(awaited, { maxItems: 10_000 }),
        matches: Type.Record(Type.String(), json, {
          description: "By the name of a signal: what its payload must contain, as JSON text",
        }),
        after: Type.Integer({
          minimum: 0,
          maximum: maxInt,
          description:
            "The lowest inboxSeq of the pending verdicts on those waits: later signals wake the run",
        }),
        dueAt: Type.Union([date, Type.Null()], {
          description: "The earliest dueAt of the waits, as the server wrote it; null: none",
        }),
        steps: Type.Array(longName, { maxItems: 10_000, description: "The names of the steps that wait" }),
      },
      {
        title: "SuspendTransition",
        description: "Workflows: park until one of the recorded waits may be over; then the body runs again",
      },
    ),
    strict(
      { kind: Type.Literal("done"), step: machineStep, result: json },
      { title: "DoneTransition", description: "The run is done. step: of a machine, the last one" },
    ),
    strict(
      { kind: Type.Literal("stop"), step: machineStep, error: errorJson },
      { title: "StopTransition", description: "The run has failed. step: where" },
    ),
  ],
  { title: "Transition", description: "What the outcome of a step makes of its run" },
);

const completed = {
  attempt: Type.Integer({
    minimum: 0,
    maximum: maxInt,
    description: "How often the step has failed before: 0 at first",
  }),
  output: Type.Union([json, Type.Null()], { description: "What the step returned; null if it failed" }),
  error: Type.Union([errorJson, Type.Null()], {
    description: "Why it has failed for good; null if it succeeded",
  }),
  tookMs: Type.Number({ minimum: 0, maximum: maxMs }),
};

export const change = oneOfKinds(
  "op",
  [
    strict(
      { op: Type.Literal("run"), ...completed },
      { title: "RunChange", description: "A step that is a function has ended" },
    ),
    strict(
      { op: Type.Literal("transaction"), ...completed },
      {
        title: "TransactionChange",
        description: "The same for a step that was a transaction; a remote worker has none",
      },
    ),
    strict(
      {
        op: Type.Literal("retry"),
        kind: Type.Enum(["run", "transaction"]),
        attempt: Type.Integer({
          minimum: 0,
          maximum: maxInt,
          description: "How often it has failed by now: 1 at first",
        }),
        error: errorJson,
        delayMs: ms,
      },
      { title: "RetryChange", description: "A step has failed and is to be tried again after delayMs" },
    ),
    strict(
      { op: Type.Literal("due") },
      { title: "DueChange", description: "Is it time for that further attempt?" },
    ),
    strict(
      { op: Type.Literal("sleep"), delayMs: orNull(ms), at: orNull(date) },
      { title: "SleepChange", description: "Begins a sleep, or asks whether it is over" },
    ),
    strict(
      { op: Type.Literal("wait"), event: longName, match: orNull(json), delayMs: orNull(ms) },
      { title: "WaitChange", description: "Begins to wait for a signal, or asks whether it has come" },
    ),
    strict(
      { op: Type.Literal("invoke"), child: newRun },
      { title: "InvokeChange", description: "Starts a run, or asks whether it has ended" },
    ),
  ],
  {
    title: "JournalChange",
    description: "What is to be recorded of a step. sleep, wait and invoke are sent again to ask",
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
      description: "The last signal that you have read: inboxSeq of the claimed run, or of a later verdict",
    }),
    parentId: Type.Union([id, Type.Null()], { description: "As the claimed run has it" }),
    partitionKey: Type.Union([key, Type.Null()], { description: "As the claimed run has it" }),
    next: Type.Union([strict({ workerId, claimId: id }), Type.Null()], {
      description:
        "If this ends the claim and frees a partition key: claim the next run of the key with this fresh claimId. null: do not",
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
      description: "One more than the highest seq in the journal: the place in the order of replay",
    }),
    inboxSeq: Type.Integer({ minimum: 0, maximum: maxInt, description: "The last signal that you know of" }),
    change,
  },
  { title: "JournalEntry" },
);
