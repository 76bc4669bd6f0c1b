/**
 * Translates the arguments and rows of the SQL functions for journals. Pure; only the store uses
 * it.
 */

import type { ErrorRecord } from "../../values/error-record.js";
import { fromJson } from "../../values/json.js";
import type { Json } from "../../values/json-types.js";
import type {
  JournalChange,
  JournalEntry,
  ListedStep,
  RecordVerdict,
  StepKind,
  StoredStep,
} from "../journal.js";
import type { NewRun } from "../store.js";
import { column } from "./literals.js";

type InlineStep = [
  name: string,
  kind: StepKind,
  seq: number | null,
  attempt: number,
  childId: string | null,
  dueMs: number | null,
  dueAt: string | null,
  output: Json,
  error: ErrorRecord | null,
];

const nothing: readonly StoredStep[] = [];

/**
 * Decodes the journal that came with a run: none, all of it, or (empty text) too large to include.
 */
export function toJournal(text: string | null): readonly StoredStep[] | null {
  if (text === null) return nothing;
  if (text === "") return null;
  const entries = fromJson<InlineStep[]>(text);
  return entries.map(([name, kind, seq, attempt, childId, dueMs, dueAt, output, error]) => {
    return { name, kind, seq, attempt, childId, dueMs, dueAt, output, error };
  });
}

export interface StepRow {
  name: string;
  kind: StepKind;
  seq: number | null;
  attempt: number;
  child_id: string | null;
  due_ms: number | null;
  due_at: string | null;
  output: string | null;
  error: string | null;
  started_at: string;
  completed_at: string | null;
}

export function toListedStep(row: StepRow): ListedStep {
  return {
    name: row.name,
    kind: row.kind,
    seq: row.seq,
    attempt: row.attempt,
    childId: row.child_id,
    dueMs: row.due_ms,
    dueAt: row.due_at,
    output: row.output === null ? null : fromJson(row.output),
    error: row.error === null ? null : fromJson<ErrorRecord>(row.error),
    startedAt: new Date(row.started_at),
    completedAt: row.completed_at === null ? null : new Date(row.completed_at),
  };
}

/** Returns the arguments of `record`. */
export function recordArguments(
  entries: readonly JournalEntry[],
  patient: boolean,
  toChild: (run: NewRun) => object,
): unknown[] {
  return [
    column(entries, (entry) => entry.runId),
    column(entries, (entry) => entry.claimId),
    column(entries, (entry) => entry.name),
    column(entries, ({ change }) => change.op),
    column(entries, (entry) => entry.seq),
    column(entries, ({ change }) => ("attempt" in change ? change.attempt : null)),
    column(entries, ({ change }) => ("output" in change ? change.output : null)),
    column(entries, ({ change }) => ("error" in change ? change.error : null)),
    column(entries, ({ change }) => durationOf(change)),
    column(entries, ({ change }) => detailOf(change, toChild)),
    column(entries, (entry) => entry.inboxSeq || null),
    patient,
  ];
}

function durationOf(change: JournalChange): number | null {
  if ("tookMs" in change) return change.tookMs;
  return "delayMs" in change ? change.delayMs : null;
}

function detailOf(change: JournalChange, toChild: (run: NewRun) => object): string | null {
  switch (change.op) {
    case "run":
    case "transaction":
    case "due":
      return null;
    case "retry":
      return JSON.stringify({ kind: change.kind });
    case "sleep":
      return change.at === null ? null : JSON.stringify({ at: change.at });
    case "wait": {
      const match = change.match === null ? "" : `,"match":${change.match}`;
      return `{"event":${JSON.stringify(change.event)}${match}}`;
    }
    case "invoke":
      return JSON.stringify({ children: [toChild(change.child)] });
  }
}

interface OtherRecord {
  position: number;
  verdict: "done" | "pending" | "fresh" | "stale" | "busy" | "failed";
  seq: number;
  output: Json;
  error: ErrorRecord | null;
  inbox_seq: number;
  child_id: string | null;
  due_ms: number | null;
  due_at: string | null;
  code: string;
  message: string;
  paused?: boolean | null;
}

const recorded: RecordVerdict = { kind: "recorded", inboxSeq: null };

export function toRecordVerdicts(text: string | null, count: number): RecordVerdict[] {
  const verdicts = new Array<RecordVerdict>(count).fill(recorded);
  if (text === null) return verdicts;
  for (const other of fromJson<OtherRecord[]>(text)) {
    verdicts[other.position - 1] = toRecordVerdict(other);
  }
  return verdicts;
}

function toRecordVerdict(other: OtherRecord): RecordVerdict {
  const pause = other.paused === true ? { paused: true } : {};
  switch (other.verdict) {
    case "done":
      return { kind: "done", seq: other.seq, output: other.output, error: other.error, ...pause };
    case "pending":
      return {
        kind: "pending",
        inboxSeq: other.inbox_seq,
        childId: other.child_id,
        dueMs: other.due_ms,
        dueAt: other.due_at,
        ...pause,
      };
    case "fresh":
      return { kind: "recorded", inboxSeq: other.inbox_seq, ...pause };
    case "failed":
      return { kind: "failed", code: other.code, message: other.message };
    case "stale":
    case "busy":
      return { kind: other.verdict };
  }
}
