/**
 * What the SQL functions take and answer, translated: rows to the types of the boundary, and what only some transitions
 * have to JSON. Pure; used by the store alone.
 */

import { fromJson } from "../../define/json.js";
import type { Json } from "../../define/json-types.js";
import type {
  Claimable,
  ClaimedRun,
  NewRun,
  StoredRun,
  StoredSignal,
  Transition,
  Verdict,
} from "../store.js";
import { toJournal } from "./journal-rows.js";

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
  unique_lost: boolean;
  meta: string | null;
}

export interface OtherVerdict {
  position: number;
  verdict: "already" | "stale" | "busy" | "failed" | "unique_lost" | "fresh";
  code?: string;
  message?: string;
  inboxSeq?: number;
}

type Committed = Extract<Verdict, { kind: "committed" }>;

export const committed: Committed = { kind: "committed", uniqueLost: false, inboxSeq: null, handed: null };

export function toVerdict({ verdict, code = "", message = "", inboxSeq = 0 }: OtherVerdict): Verdict {
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
    case "busy":
      return { kind: verdict };
  }
}

export const isEnd = ({ kind }: Transition): boolean => kind === "done" || kind === "stop";

/** What only some transitions have, as JSON; most have nothing. */
export function detailOf(transition: Transition): string | null {
  switch (transition.kind) {
    case "keep":
      return transition.consumed.length === 0 ? null : JSON.stringify({ consumed: transition.consumed });
    case "next": {
      const { partitionKey, rateLimit, weight, consumed } = transition;
      if (partitionKey === undefined && rateLimit === null && consumed.length === 0) return null;
      return JSON.stringify({ partitionKey, ...(rateLimit === null ? {} : { rateLimit, weight }), consumed });
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

/** A run to be started, as `new_runs` takes it. */
export function childOf(run: NewRun): object {
  return {
    ...run,
    uniqueKey: run.uniqueKey === null ? null : Buffer.from(run.uniqueKey).toString("hex"),
    uniqueScope: run.uniqueScope && `{${run.uniqueScope.join(",")}}`,
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
    uniqueLost: row.unique_lost,
  };
}

const nothing: readonly StoredSignal[] = [];

/** The inbox that came along with a run: nothing, all of it, or (empty text) too much. */
function toInbox(text: string | null): ClaimedRun["inbox"] {
  if (text === null) return nothing;
  if (text === "") return null;
  const entries = fromJson(text) as unknown as [number, string, Json, string, boolean][];
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
}

const toDate = (text: string | null): Date | null => (text === null ? null : new Date(text));

export function toRun(row: RunRow): StoredRun {
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
  };
}
