/**
 * Translates the arguments and rows of the SQL functions. Rows become the types of the boundary,
 * and fields that only some transitions have become JSON. Pure; only the stores use it.
 */

import { fromJson } from "../../values/json.js";
import type { Json } from "../../values/json-types.js";
import type {
  Claim,
  Claimable,
  ClaimedRun,
  ClaimExtra,
  NewRun,
  NewSignal,
  OverdueRun,
  Recovered,
  StartedRun,
  StoredRun,
  RunExtra,
  StoredSignal,
  Transition,
  Verdict,
} from "../store.js";
import type { Pause } from "../views.js";
import { toJournal } from "./journal-rows.js";
import { column, record, records } from "./literals.js";

type Value = string | number | boolean | null;

/** Returns the arguments of `start_runs`. */
export function startValues(
  runs: readonly NewRun[],
  { allOrNothing, patient, claim }: { allOrNothing: boolean; patient: boolean; claim: Claim | null },
): Value[] {
  return [
    records(runs, newRunFields),
    column(runs, (run) => run.input),
    allOrNothing,
    patient,
    claim?.workerId ?? null,
    claim?.claimId ?? null,
  ];
}

/** Returns the arguments of `start_one`. */
export function startOneValues(
  run: NewRun,
  { patient, claim }: { patient: boolean; claim: Claim | null },
): Value[] {
  return [
    record(newRunFields(run)),
    run.input,
    patient,
    run.direct ? claim!.workerId : null,
    run.direct ? claim!.claimId : null,
  ];
}

/** The fields of the SQL type `new_run`, in its order. */
function newRunFields(run: NewRun) {
  return [
    run.name,
    run.version,
    run.kind,
    run.queue,
    run.priority,
    run.step,
    run.delayMs,
    run.at,
    run.retentionMs,
    run.idempotencyKey,
    run.uniqueKey,
    scopeOf(run),
    run.partitionKey,
    run.rateLimit,
    run.weight,
    null, // its parent, the number of its spawn and its place in it: new_runs sets them
    null,
    null,
    run.trace,
    run.direct,
    optionsOf(run),
  ];
}

/** The rare options as `read_options` takes them. */
const optionsOf = ({ options }: NewRun): string | null => options && JSON.stringify(options);

const scopeOf = ({ uniqueScope }: NewRun): string | null => uniqueScope && `{${uniqueScope.join(",")}}`;

export interface StartRow {
  position: number;
  id: string;
  created: boolean;
  status: StartedRun["phase"];
  conflict: string | null;
}

/** Sorts the answers of `start` into the order of the runs. They arrive in another order. */
export function toStarted(rows: readonly StartRow[]): StartedRun[] {
  const started: StartedRun[] = [];
  for (const { position, id, created, status, conflict } of rows) {
    started[position - 1] = { runId: id, created, phase: status, conflict };
  }
  return started;
}

/** Returns the arguments of `signal`. */
export function signalValues(signals: readonly NewSignal[], { patient }: { patient: boolean }): Value[] {
  return [
    column(signals, (signal) => signal.runId),
    column(signals, (signal) => signal.name),
    column(signals, (signal) => signal.payload),
    column(signals, (signal) => signal.dedupKey),
    patient,
  ];
}

export interface ClaimRow {
  id: string;
  name: string;
  version: number;
  step: string | null;
  priority: number;
  attempt: number;
  crashes: number;
  parent_id: string | null;
  partition_key: string | null;
  timed_out: boolean;
  children: number | null;
  inbox_seq: number;
  inbox: string | null;
  input: string | null;
  state: string | null;
  journal: string | null;
  waiting: string | null;
  unique_lost: boolean;
  started_ms: number;
  trace: string | null;
  extra: string | null;
  meta: string | null;
}

export interface OtherVerdict {
  position: number;
  verdict: "already" | "stale" | "busy" | "failed" | "unique_lost" | "fresh";
  code?: string;
  message?: string;
  inboxSeq?: number;
  paused?: boolean;
  /** An answer was lost: the database has this commit. */
  sentAgain?: boolean;
}

type Committed = Extract<Verdict, { kind: "committed" }>;

export const committed: Committed = { kind: "committed", uniqueLost: false, inboxSeq: null, handed: null };

export interface FinishRow {
  claimable: string | null;
  handed: string | null;
}

export function toFinished({ handed }: FinishRow): Committed {
  if (handed === null) return committed;
  return { ...committed, handed: toClaimedRun(JSON.parse(handed) as ClaimRow) };
}

export function toVerdict(other: OtherVerdict): Verdict {
  const { verdict, code = "", message = "", inboxSeq = 0 } = other;
  switch (verdict) {
    case "failed":
      return { kind: "failed", code, message };
    case "unique_lost":
      return { ...committed, uniqueLost: true };
    case "fresh":
      return { ...committed, inboxSeq };
    case "already":
      return { kind: "already", inboxSeq };
    case "stale":
      // Workers of version 1 see a lost claim, and execute no further step.
      if (other.paused !== true) return { kind: "stale" };
      return other.sentAgain === true
        ? { kind: "already", inboxSeq, paused: true }
        : { ...committed, inboxSeq, paused: true };
    case "busy":
      return { kind: "busy" };
  }
}

export const isEnd = ({ kind }: Transition): boolean => kind === "done" || kind === "stop";

/** Returns the fields that only some transitions have, as JSON. Most transitions have none. */
export function detailOf(transition: Transition): string | null {
  switch (transition.kind) {
    case "keep":
      return transition.consumed.length === 0 ? null : JSON.stringify({ consumed: transition.consumed });
    case "next": {
      const { partitionKey, rateLimit, weight, concurrency, consumed } = transition;
      const isPlain = partitionKey === undefined && rateLimit === null && concurrency === undefined;
      if (isPlain && consumed.length === 0) return null;
      const limit = rateLimit === null ? {} : { rateLimit, weight };
      return JSON.stringify({ partitionKey, concurrency, ...limit, consumed });
    }
    case "await": {
      const { names, match, shown } = transition;
      const wanted = match === null ? "" : `,"match":${match}`;
      return `{"awaits":{"names":${JSON.stringify(names)}${wanted}},"shown":${JSON.stringify(shown)}}`;
    }
    case "spawn": {
      const { children, consumed } = transition;
      return JSON.stringify({ consumed, children: children.map(childOf) });
    }
    case "suspend": {
      const { names, matches, after, dueAt, steps } = transition;
      const wanted = Object.entries(matches).map(([name, match]) => `${JSON.stringify(name)}:${match}`);
      return (
        `{"awaits":{"names":${JSON.stringify(names)},"matches":{${wanted.join()}},"after":${after},` +
        `"steps":${JSON.stringify(steps)}},"shown":[],"at":${JSON.stringify(dueAt ?? "infinity")}}`
      );
    }
    case "retry":
    case "done":
    case "stop":
      return null;
  }
}

/** Returns a run to start, in the form that `new_runs` takes. */
export function childOf(run: NewRun): object {
  return {
    name: run.name,
    version: run.version,
    kind: run.kind,
    queue: run.queue,
    priority: run.priority,
    input: run.input,
    step: run.step,
    delay_ms: run.delayMs,
    at: run.at,
    retention_ms: run.retentionMs,
    idempotency_key: run.idempotencyKey,
    unique_key: run.uniqueKey && `\\x${Buffer.from(run.uniqueKey).toString("hex")}`,
    unique_scope: scopeOf(run),
    partition_key: run.partitionKey,
    rate_limit: run.rateLimit,
    weight: run.weight,
    trace: run.trace,
    options: optionsOf(run),
  };
}

export function toClaimable(text: string | null): Claimable[] {
  if (text === null) return [];
  const entries = JSON.parse(text) as [queue: string, priority: number, microseconds: number][];
  return entries.map(([queue, priority, microseconds]) => ({ queue, priority, microseconds }));
}

export function toClaimedRun(row: ClaimRow): ClaimedRun {
  return {
    runId: row.id,
    name: row.name,
    version: row.version,
    step: row.step,
    priority: row.priority,
    attempt: row.attempt,
    crashes: row.crashes,
    parentId: row.parent_id,
    partitionKey: row.partition_key,
    timedOut: row.timed_out,
    children: row.children,
    inboxSeq: row.inbox_seq,
    inbox: toInbox(row.inbox),
    input: row.input,
    state: row.state,
    journal: toJournal(row.journal),
    waiting: row.waiting === null ? [] : row.waiting === "" ? null : (JSON.parse(row.waiting) as string[]),
    uniqueLost: row.unique_lost,
    startedMs: row.started_ms,
    trace: row.trace,
    extra: row.extra === null ? null : (JSON.parse(row.extra) as ClaimExtra),
  };
}

export interface OverdueRow {
  id: string;
  name: string;
  parentId: string | null;
  startedMs: number;
  error: Json;
}

export function toOverdue({ id, error, ...rest }: OverdueRow): OverdueRun {
  return { runId: id, error: JSON.stringify(error), ...rest };
}

export interface RecoverRow {
  reaped: number;
  queues: string;
  marks: string;
  again: boolean;
  is_waited: boolean;
  due_ms: number | null;
}

export function toRecovered(row: RecoverRow): Recovered {
  const { failed = [], bulk = false } = JSON.parse(row.marks) as { failed?: OverdueRow[]; bulk?: boolean };
  return {
    reaped: row.reaped,
    overdue: failed.map(toOverdue),
    queues: JSON.parse(row.queues) as string[],
    marks: row.marks,
    again: row.again,
    isWaited: row.is_waited,
    hasBulk: bulk,
    dueMs: row.due_ms ?? Number.POSITIVE_INFINITY,
  };
}

const nothing: readonly StoredSignal[] = [];

/**
 * Decodes the inbox that came with a run: none, all of it, or (empty text) too large to include.
 */
function toInbox(text: string | null): ClaimedRun["inbox"] {
  if (text === null) return nothing;
  if (text === "") return null;
  const entries = fromJson<[number, string, Json, string, boolean][]>(text);
  return entries.map(([seq, name, payload, receivedAt, matched]) => {
    return { seq, name, payload, receivedAt: new Date(receivedAt), matched };
  });
}

export interface RunRow {
  id: string;
  name: string;
  version: number;
  kind: string | null;
  status: StoredRun["phase"];
  step: string | null;
  attempt: number;
  queue: string;
  priority: number;
  input: string;
  state: string | null;
  result: string | null;
  error: string | null;
  parent_id: string | null;
  idempotency_key: string | null;
  inserted_at: string;
  completed_at: string | null;
  eligible_at: string | null;
  expires_at: string | null;
  /** JSON: facts that few runs have. */
  extra: string | null;
}

type RunFacts = RunExtra & { readonly paused?: Omit<Pause, "since"> & { readonly since: string } };

const toDate = (text: string | null): Date | null => (text === null ? null : new Date(text));

export function toRun(row: RunRow): StoredRun {
  const { paused, ...extra } = row.extra === null ? {} : (JSON.parse(row.extra) as RunFacts);
  return {
    runId: row.id,
    name: row.name,
    version: row.version,
    kind: row.kind,
    phase: row.status,
    step: row.step,
    attempt: row.attempt,
    queue: row.queue,
    priority: row.priority,
    input: row.input,
    state: row.state,
    result: row.result,
    error: row.error,
    parentId: row.parent_id,
    idempotencyKey: row.idempotency_key,
    startedAt: new Date(row.inserted_at),
    completedAt: toDate(row.completed_at),
    eligibleAt: toDate(row.eligible_at),
    expiresAt: toDate(row.expires_at),
    extra,
    paused: paused === undefined ? null : { ...paused, since: new Date(paused.since) },
  };
}
