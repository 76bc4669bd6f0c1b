/**
 * What workers get: the schemas of the answers of the worker protocol, for the OpenAPI document. Their
 * members are those of the types of the store, which the compiler checks here.
 */

import type {
  BeatAnswer,
  ClaimedRun,
  RecordVerdict,
  StoredChild,
  StoredSignal,
  StoredStep,
  Verdict,
} from "pawl/engine";
import type { ListedStep } from "pawl/engine";
import { type TSchema, Type } from "typebox";
import { errorRecord, strict } from "../http/schemas.js";
import { id, int, longName, oneOfKinds, orNull, priority, shortName, version } from "./request-schemas.js";

/** A schema for every member of a type, no more and no fewer. */
type Members<T> = Record<keyof T, TSchema>;

const json = (description: string) => Type.Unknown({ description });
const jsonText = (description: string) => Type.String({ description: `${description}; JSON as text` });
const runId = id;
const date = Type.String({ format: "date-time" });
const dueMs = Type.Union([Type.Number(), Type.Null()], {
  description: "Milliseconds until the wait is due, at most 0 if it is; null: it has no due time",
});
const dueAt = Type.Union([Type.String(), Type.Null()], {
  description: "The same as a time. Give it back as it is in a suspend transition",
});

const signal = strict(
  {
    seq: Type.Integer({ minimum: 1, description: "Its place in the inbox" }),
    name: Type.String({ description: "Beginning with ~: the end of an invoked run" }),
    payload: json("What was sent"),
    receivedAt: date,
    matched: Type.Boolean({ description: "The await that led to this step wants it" }),
  } satisfies Members<StoredSignal>,
  { title: "InboxSignal" },
);

const stepMembers = {
  name: longName,
  kind: Type.Enum(["run", "sleep", "wait", "invoke", "transaction"]),
  seq: Type.Union([int, Type.Null()], {
    description: "The place of a completed step in the order of replay; null: it is pending",
  }),
  attempt: Type.Integer({ minimum: 0, description: "How often it has failed" }),
  childId: Type.Union([runId, Type.Null()], { description: "The run that an invoke has started" }),
  dueMs,
  dueAt,
  output: json("What it has returned, or the payload of the signal; null if it has not, or timed out"),
  error: Type.Union([errorRecord, Type.Null()], {
    description: "Completed: why it has failed. Pending: the error of its last attempt",
  }),
} satisfies Members<StoredStep>;
const step = strict(stepMembers, { title: "JournalStep" });
const listedStep = strict(
  { ...stepMembers, startedAt: date, completedAt: orNull(date) } satisfies Members<ListedStep>,
  { title: "ListedJournalStep" },
);

const child = strict(
  {
    position: Type.Integer({ minimum: 0, description: "Its place in the spawn" }),
    runId,
    name: shortName,
    phase: Type.Enum([
      "runnable",
      "executing",
      "awaiting_signal",
      "awaiting_children",
      "done",
      "failed",
      "cancelled",
    ]),
    result: orNull(jsonText("Of a run that is done")),
    error: orNull(jsonText("An ErrorRecord, of one that has failed or was cancelled")),
    created: Type.Boolean({
      description:
        "False: its unique key was taken; this is the run that holds it, and it was not waited for",
    }),
  } satisfies Members<StoredChild>,
  { title: "Child" },
);

const claimedRun = strict(
  {
    runId,
    name: shortName,
    version,
    step: Type.Union([longName, Type.Null()], {
      description: "Machines: the step to execute; null: the initial one",
    }),
    priority,
    attempt: Type.Integer({ minimum: 0, description: "Retries and crashes since the last progress" }),
    crashes: Type.Integer({ minimum: 0, description: "Crashes since the last progress" }),
    parentId: Type.Union([runId, Type.Null()], { description: "To be sent with every commit" }),
    partitionKey: Type.Union([Type.String(), Type.Null()], {
      description: "To be sent with every commit",
    }),
    timedOut: Type.Boolean({ description: "Machines: the await that led to this step ended by its timeout" }),
    children: Type.Union([int, Type.Null()], {
      description:
        "Machines: how many children the spawn that led to this step had (read them by children); null: no spawn did",
    }),
    inboxSeq: Type.Integer({ minimum: 0, description: "The seq of the last signal delivered" }),
    inbox: Type.Union([Type.Array(signal), Type.Null()], {
      description: "Jobs and machines: what is in the inbox; null: too much, read it by inbox",
    }),
    input: Type.Union([jsonText("The input"), Type.Null()], { description: "null if there is a state" }),
    state: Type.Union([jsonText("The state of a machine"), Type.Null()], {
      description: "null until a transition has written one: then the input is the state",
    }),
    journal: Type.Union([Type.Array(step), Type.Null()], {
      description: "Workflows: the recorded steps, in no order; null: too much, read it by journal",
    }),
    waiting: Type.Union([Type.Array(Type.String()), Type.Null()], {
      description: "Workflows: the names of the signals in the inbox; null: too many to tell",
    }),
    uniqueLost: Type.Boolean({
      description:
        "By this claim the run entered its unique scope again, and gave up its key, which was taken",
    }),
    startedMs: Type.Number({ description: "When it was started, milliseconds since 1970" }),
    trace: Type.Union([Type.String(), Type.Null()], { description: "The traceparent of the run" }),
  } satisfies Members<ClaimedRun>,
  {
    title: "ClaimedRun",
    description: "A run that is yours, by the claimId that you gave, for as long as your lease runs",
  },
);

const stale = strict(
  { kind: Type.Literal("stale") },
  { title: "StaleVerdict", description: "The claim is gone, nothing was written: drop the run" },
);
const busy = strict(
  { kind: Type.Literal("busy") },
  {
    title: "BusyVerdict",
    description:
      "Somebody's transaction has the run locked, nothing was written: send it again later, with patient: false",
  },
);
const failed = strict(
  {
    kind: Type.Literal("failed"),
    code: Type.String({ description: "An SQLSTATE, PW409, PW422, or a code of the library" }),
    message: Type.String(),
  },
  {
    title: "FailedVerdict",
    description: "The values were refused, nothing was written, the claim goes on: an error of the step",
  },
);

const verdict = oneOfKinds(
  "kind",
  [
    strict(
      {
        kind: Type.Literal("committed"),
        uniqueLost: Type.Boolean({
          description: "The run entered its unique scope again, and gave up its key, which was taken",
        }),
        inboxSeq: Type.Union([int, Type.Null()], {
          description:
            "After keep: the inbox has more signals, up to this seq (read them by inbox); null: no more",
        }),
        handed: Type.Union([claimedRun, Type.Null()], {
          description: "The next run of the key, claimed with the claimId of next",
        }),
      } satisfies Members<Extract<Verdict, { kind: "committed" }>>,
      { title: "CommittedVerdict" },
    ),
    strict(
      { kind: Type.Literal("already"), inboxSeq: int } satisfies Members<
        Extract<Verdict, { kind: "already" }>
      >,
      {
        title: "AlreadyVerdict",
        description: "An earlier call whose answer was lost has committed it: go on as after committed",
      },
    ),
    stale,
    busy,
    failed,
  ],
  { title: "CommitVerdict", description: "What has become of a transition" },
);

const recordVerdict = oneOfKinds(
  "kind",
  [
    strict(
      {
        kind: Type.Literal("recorded"),
        inboxSeq: Type.Union([int, Type.Null()], {
          description: "The inbox has more signals than you know of, up to this seq; null: no more",
        }),
      },
      { title: "RecordedVerdict", description: "Recorded under the seq that you gave" },
    ),
    strict(
      {
        kind: Type.Literal("done"),
        seq: int,
        output: json("What it came to; null after a sleep or a timeout"),
        error: orNull(errorRecord),
      } satisfies Members<Extract<RecordVerdict, { kind: "done" }>>,
      {
        title: "StepDoneVerdict",
        description: "The wait is over, or an earlier call has recorded the step: this is what holds",
      },
    ),
    strict(
      {
        kind: Type.Literal("pending"),
        inboxSeq: Type.Integer({ minimum: 0, description: "Signals were tried up to this seq" }),
        childId: orNull(runId),
        dueMs,
        dueAt,
      } satisfies Members<Extract<RecordVerdict, { kind: "pending" }>>,
      { title: "PendingVerdict", description: "Recorded, and not over yet" },
    ),
    stale,
    busy,
    failed,
  ],
  { title: "RecordVerdict", description: "What has become of a journal entry" },
);

const claimIds = (description: string) =>
  Type.Record(Type.String(), id, { description: `${description}: claim ids by run id` });

export const beat = strict(
  {
    alive: Type.Boolean({ description: "False: the lease has passed, or there is no such worker" }),
    cancelled: claimIds("Runs that you hold and that were cancelled"),
    held: Type.Union([claimIds("The runs that you hold"), Type.Null()], {
      description: "null: not asked for",
    }),
    databaseHeld: Type.Boolean({ description: "Nothing is claimed, and no further step is to begin" }),
    timeline: orNull(
      Type.String({
        description: "The timeline of the database's server; when it changes, compare everything: holdings",
      }),
    ),
  } satisfies Members<BeatAnswer>,
  { title: "Beat" },
);

// What a handler returns is of the types of the store, whose dates are texts once they are sent.
export const claimed = strict(
  {
    runs: Type.Array(Type.Unsafe<ClaimedRun>(claimedRun)),
    more: Type.Boolean({ description: "There may be more to claim at once" }),
  },
  { title: "Claimed" },
);
export const holdings = strict({ held: claimIds("Everything that you hold") });
export const verdicts = strict({ verdicts: Type.Array(Type.Unsafe<Verdict>(verdict)) });
export const recordVerdicts = strict({ verdicts: Type.Array(Type.Unsafe<RecordVerdict>(recordVerdict)) });
export const journalPage = strict({ steps: Type.Array(Type.Unsafe<ListedStep>(listedStep)) });
export const inboxPage = strict({ signals: Type.Array(Type.Unsafe<StoredSignal>(signal)) });
export const childrenPage = strict({ children: Type.Array(Type.Unsafe<StoredChild>(child)) });
export const inboxSeqs = strict({ seqs: Type.Record(Type.String(), int) });
