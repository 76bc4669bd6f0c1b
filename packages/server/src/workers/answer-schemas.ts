/**
 * The answers of the worker protocol as schemas, for the OpenAPI document. The compiler checks that
 * they have the members of the store's types.
 */

import type {
  HeartbeatAnswer,
  ClaimedRun,
  ClaimExtra,
  ListedStep,
  OverdueRun,
  RecordVerdict,
  StoredChild,
  StoredSignal,
  StoredStep,
  Verdict,
} from "pawl/engine";
import { type TSchema, Type } from "typebox";
import { errorRecord, nullable, strict } from "../http/schemas.js";
import { id, int, longName, oneOfKinds, priority, shortName, version } from "./request-schemas.js";

/** A schema for every member of a type, no more and no fewer. */
type Members<T> = Record<keyof T, TSchema>;

const json = (description: string) => Type.Unknown({ description });
const jsonText = (description: string) => Type.String({ description: `${description}; JSON as text` });
const runId = id;
const date = Type.String({ format: "date-time" });
const dueMs = Type.Union([Type.Number(), Type.Null()], {
  description: "Milliseconds until the wait is due, 0 or less if it is due; null: it has no due time",
});
const dueAt = Type.Union([Type.String(), Type.Null()], {
  description: "The same as a time. Return it unchanged in a suspend transition",
});

const paused = (description: string) => Type.Optional(Type.Boolean({ description }));
const claimEnded = paused(
  "After keep: the run is paused, so your claim has ended. Execute no further step of it",
);
const noFurtherStep = paused(
  "The run is paused: begin no further step, and release the claim when the running ones are recorded",
);

const signal = strict(
  {
    seq: Type.Integer({ minimum: 1, description: "Its position in the inbox" }),
    name: Type.String({ description: "A name that begins with ~ is the end of an invoked run" }),
    payload: json("The payload that was sent"),
    receivedAt: date,
    matched: Type.Boolean({ description: "It matches the await that led to this step" }),
  } satisfies Members<StoredSignal>,
  { title: "InboxSignal" },
);

const stepMembers = {
  name: longName,
  kind: Type.Enum(["run", "sleep", "wait", "invoke", "transaction"]),
  seq: Type.Union([int, Type.Null()], {
    description: "The position of a completed step in the order of replay; null: it is pending",
  }),
  attempt: Type.Integer({ minimum: 0, description: "How often it has failed" }),
  childId: Type.Union([runId, Type.Null()], { description: "The run that an invoke started" }),
  dueMs,
  dueAt,
  output: json(
    "The value that the step returned, or the payload of the signal; null: none yet, or it timed out",
  ),
  error: Type.Union([errorRecord, Type.Null()], {
    description: "Completed: why it failed. Pending: the error of its last attempt",
  }),
} satisfies Members<StoredStep>;
const step = strict(stepMembers, { title: "JournalStep" });
const listedStep = strict(
  { ...stepMembers, startedAt: date, completedAt: nullable(date) } satisfies Members<ListedStep>,
  { title: "ListedJournalStep" },
);

const child = strict(
  {
    position: Type.Integer({ minimum: 0, description: "Its position in the spawn" }),
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
    result: nullable(jsonText("The result of a run that is done")),
    error: nullable(jsonText("An ErrorRecord, of a run that failed or was cancelled")),
    created: Type.Boolean({
      description:
        "False: another run holds its unique key; this is that run, and the spawn did not wait for it",
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
    parentId: Type.Union([runId, Type.Null()], { description: "Send it with every commit" }),
    partitionKey: Type.Union([Type.String(), Type.Null()], {
      description: "Send it with every commit",
    }),
    timedOut: Type.Boolean({ description: "Machines: the await that led to this step ended by its timeout" }),
    children: Type.Union([int, Type.Null()], {
      description:
        "Machines: how many children the spawn before this step had (read them with children); null: there was no spawn",
    }),
    inboxSeq: Type.Integer({ minimum: 0, description: "The seq of the last signal delivered" }),
    inbox: Type.Union([Type.Array(signal), Type.Null()], {
      description: "Jobs and machines: the inbox; null: too large, read it with inbox",
    }),
    input: Type.Union([jsonText("The input"), Type.Null()], { description: "null if the run has a state" }),
    state: Type.Union([jsonText("The state of a machine"), Type.Null()], {
      description: "null until a transition writes one; until then the input is the state",
    }),
    journal: Type.Union([Type.Array(step), Type.Null()], {
      description: "Workflows: the recorded steps, in no order; null: too many, read them with journal",
    }),
    waiting: Type.Union([Type.Array(Type.String()), Type.Null()], {
      description: "Workflows: the names of the signals in the inbox; null: too many to list",
    }),
    uniqueLost: Type.Boolean({
      description:
        "With this claim the run entered its unique scope again; another run holds its key, so it gave the key up",
    }),
    startedMs: Type.Number({ description: "When the run was started, in milliseconds since 1970" }),
    trace: Type.Union([Type.String(), Type.Null()], { description: "The traceparent of the run" }),
    extra: Type.Union(
      [
        strict({
          originId: Type.Optional(Type.String({ description: "The first run of its chain of reruns" })),
          schedule: Type.Optional(
            Type.String({
              description: "schedule/<name>/<time>: the schedule that started it, and its tick",
            }),
          ),
          tags: Type.Optional(Type.Record(Type.String(), Type.String())),
          deadlineMs: Type.Optional(
            Type.Number({ description: "Milliseconds until its deadline, at the time of the claim" }),
          ),
        } satisfies Members<ClaimExtra>),
        Type.Null(),
      ],
      { description: "Facts that few runs have; null: none" },
    ),
  } satisfies Members<ClaimedRun>,
  {
    title: "ClaimedRun",
    description: "A run that you hold under your claimId, for as long as you renew your lease",
  },
);

export const overdue = strict({
  failed: Type.Array(
    strict({
      runId,
      name: shortName,
      parentId: nullable(runId),
      startedMs: Type.Number(),
      error: jsonText("An ErrorRecord"),
    } satisfies Members<OverdueRun>),
    { description: "These have failed: abort their code and release their claims" },
  ),
  dueMs: Type.Union([Type.Number(), Type.Null()], {
    description: "Milliseconds until the next deadline of the others; null: none has one",
  }),
});

const stale = strict(
  { kind: Type.Literal("stale") },
  { title: "StaleVerdict", description: "The claim is lost, nothing was written: drop the run" },
);
/** Of a commit. A worker that does not know `paused` still executes no further step of the run. */
const staleCommit = strict(
  { kind: Type.Literal("stale"), paused: claimEnded },
  {
    title: "StaleCommitVerdict",
    description:
      "The claim is lost, nothing was written: drop the run. With `paused` the outcome was committed: drop the run too",
  },
);
const busy = strict(
  { kind: Type.Literal("busy") },
  {
    title: "BusyVerdict",
    description:
      "Another transaction has locked the run, nothing was written: send it again later, with patient: false",
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
    description:
      "The database refused the values, nothing was written, you keep the claim: treat it as an error of the step",
  },
);

const verdict = oneOfKinds(
  "kind",
  [
    strict(
      {
        kind: Type.Literal("committed"),
        uniqueLost: Type.Boolean({
          description:
            "The run entered its unique scope again; another run holds its key, so it gave the key up",
        }),
        inboxSeq: Type.Union([int, Type.Null()], {
          description:
            "After keep: the inbox has more signals, up to this seq (read them with inbox); null: no more",
        }),
        handed: Type.Union([claimedRun, Type.Null()], {
          description: "The next run of the partition key, claimed with the claimId of next",
        }),
        paused: claimEnded,
      } satisfies Members<Extract<Verdict, { kind: "committed" }>>,
      { title: "CommittedVerdict" },
    ),
    strict(
      { kind: Type.Literal("already"), inboxSeq: int, paused: claimEnded } satisfies Members<
        Extract<Verdict, { kind: "already" }>
      >,
      {
        title: "AlreadyVerdict",
        description: "An earlier call, whose answer was lost, committed it: go on as after committed",
      },
    ),
    staleCommit,
    busy,
    failed,
  ],
  { title: "CommitVerdict", description: "The result of a commit" },
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
        paused: noFurtherStep,
      },
      { title: "RecordedVerdict", description: "Recorded with your seq" },
    ),
    strict(
      {
        kind: Type.Literal("done"),
        seq: int,
        output: json("The output; null after a sleep or a timeout"),
        error: nullable(errorRecord),
        paused: noFurtherStep,
      } satisfies Members<Extract<RecordVerdict, { kind: "done" }>>,
      {
        title: "StepDoneVerdict",
        description: "The wait is over, or an earlier call recorded the step: use this outcome",
      },
    ),
    strict(
      {
        kind: Type.Literal("pending"),
        inboxSeq: Type.Integer({ minimum: 0, description: "Signals up to this seq were compared" }),
        childId: nullable(runId),
        dueMs,
        dueAt,
        paused: noFurtherStep,
      } satisfies Members<Extract<RecordVerdict, { kind: "pending" }>>,
      { title: "PendingVerdict", description: "Recorded; the wait is not over" },
    ),
    stale,
    busy,
    failed,
  ],
  { title: "RecordVerdict", description: "The result of recording a journal entry" },
);

const claimIds = (description: string) =>
  Type.Record(Type.String(), id, { description: `${description}: claim ids by run id` });

export const heartbeat = strict(
  {
    alive: Type.Boolean({ description: "False: the lease has expired, or there is no such worker" }),
    cancelled: claimIds("Runs that you hold and that somebody cancelled"),
    held: Type.Union([claimIds("The runs that you hold"), Type.Null()], {
      description: "null: not asked for",
    }),
    schemaProblem: nullable(
      Type.String({
        description: "Why the server can no longer work with the schema of the database: claim nothing",
      }),
    ),
    databaseHeld: Type.Boolean({ description: "The database is held: claim nothing and begin no step" }),
    timeline: nullable(
      Type.String({
        description:
          "The timeline of the database server; when it changes, compare your claims with holdings",
      }),
    ),
  } satisfies Members<HeartbeatAnswer>,
  { title: "Beat" },
);

export const done = strict({});
// Handlers return the types of the store; their dates become texts when sent.
export const claimed = strict(
  {
    runs: Type.Array(Type.Unsafe<ClaimedRun>(claimedRun)),
    more: Type.Boolean({ description: "More runs may be due: claim again at once" }),
  },
  { title: "Claimed" },
);
export const holdings = strict({ held: claimIds("All runs that you hold") });
export const verdicts = strict({ verdicts: Type.Array(Type.Unsafe<Verdict>(verdict)) });
export const recordVerdicts = strict({ verdicts: Type.Array(Type.Unsafe<RecordVerdict>(recordVerdict)) });
export const journalPage = strict({ steps: Type.Array(Type.Unsafe<ListedStep>(listedStep)) });
export const inboxPage = strict({ signals: Type.Array(Type.Unsafe<StoredSignal>(signal)) });
export const childrenPage = strict({ children: Type.Array(Type.Unsafe<StoredChild>(child)) });
export const inboxSeqs = strict({ seqs: Type.Record(Type.String(), int) });
