/** The answers of the REST API, as JSON. The library's types say what they are. Types only. */

import type {
  Action as LibraryAction,
  BulkOperation as LibraryBulkOperation,
  BulkResult,
  ErrorRecord,
  Limit,
  QueueStats,
  Run as LibraryRun,
  Schedule as LibrarySchedule,
  ScheduleDetail as LibraryScheduleDetail,
  Step as LibraryStep,
  Why as LibraryWhy,
} from "pawl";

/** A value as JSON carries it: dates are texts. */
type Sent<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Sent<Item>[]
    : T extends object
      ? { readonly [Member in keyof T]: Sent<T[Member]> }
      : T;

type WithJson<T, Names extends keyof T> = Sent<Omit<T, Names>> & { readonly [Name in Names]: unknown };

export type Run = WithJson<LibraryRun, "input" | "state" | "output" | "error"> & {
  readonly error: ErrorRecord | null;
};
export type Step = WithJson<LibraryStep, "output" | "error"> & { readonly error: ErrorRecord | null };
export type Why = { readonly runId: string; readonly reason: LibraryWhy["reason"]; readonly text: string } & {
  readonly [name: string]: unknown;
};

export type Schedule = Sent<LibrarySchedule>;
export type ScheduleDetail = WithJson<LibraryScheduleDetail, "input">;
/** A queue or a definition that somebody paused. */
export interface Pause {
  readonly scope: "queue" | "definition";
  readonly name: string;
  readonly version: number | null;
  readonly by: string;
  readonly reason: string | null;
  readonly since: string;
}

export type Action = WithJson<LibraryAction, "detail">;
export type BulkOperation = WithJson<LibraryBulkOperation, "where">;

export interface RunPage {
  readonly runs: readonly Run[];
  readonly cursor: string | null;
}
export interface StepPage {
  readonly steps: readonly Step[];
  readonly cursor: string | null;
}
export interface Workflow {
  readonly name: string;
  readonly counts: Readonly<Record<Run["status"], number>>;
}
/** The steps of a machine, as its worker registered them. An older worker registers less. */
export interface MachineGraph {
  readonly initial: string;
  readonly steps: readonly string[];
  readonly transitions: readonly {
    readonly from: string;
    readonly to: string;
    readonly by?: string;
    readonly signals?: readonly string[];
  }[];
  readonly ends: readonly { readonly from: string; readonly by: string }[];
  readonly onError: readonly string[];
}
export interface Definition {
  readonly name: string;
  readonly version: number;
  readonly kind: "job" | "machine" | "workflow";
  readonly queue: string;
  readonly priority: number;
  readonly retentionMs: number;
  readonly timeoutMs: number | null;
  readonly registeredAt: string;
  /** Live workers that serve it. */
  readonly workers: number;
  readonly declared: Partial<MachineGraph> & { readonly signals?: readonly string[] };
}
export interface DefinitionPage {
  readonly definitions: readonly Definition[];
  readonly cursor: string | null;
}
export interface Point {
  readonly at: string;
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly backlog: number | null;
}
export interface Series {
  readonly by: "minute" | "hour";
  readonly countedTo: string | null;
  readonly points: readonly Point[];
}
export interface FailureGroup {
  readonly name: string;
  readonly code: string;
  readonly step: string | null;
  readonly message: string;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly lastRunId: string;
}
export interface WaitingRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly kind: string | null;
  readonly queue: string;
  readonly step: string | null;
  readonly signals: readonly string[];
  readonly since: string | null;
  readonly deadline: string | null;
  readonly startedAt: string;
  readonly tags: Readonly<Record<string, string>>;
}
interface KeyRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
}
export interface Key {
  readonly key: string;
  readonly holder: (KeyRun & { readonly phase: string; readonly worker: string | null }) | null;
  readonly waiting: number;
  readonly first: KeyRun | null;
}
export interface LimitSlots {
  readonly limit: string;
  readonly concurrent: number | null;
  readonly keys: readonly {
    readonly key: string | null;
    readonly held: number;
    readonly waiting: number;
    readonly holders: readonly KeyRun[];
  }[];
  readonly cursor: string | null;
}
export interface Worker {
  readonly id: string;
  readonly host: string | null;
  readonly pid: number | null;
  readonly runtime: string | null;
  readonly serves: readonly { readonly name: string; readonly version: number }[];
  readonly queues: readonly string[];
  readonly leaseMs: number;
  readonly registeredAt: string;
  readonly seenAt: string;
  readonly leaseUntil: string;
  readonly alive: boolean;
  readonly claims: number;
  readonly token: string | null;
}
export interface Finding {
  readonly check: string;
  readonly level: "ok" | "note" | "wrong";
  readonly text: string;
  readonly fix: string | null;
}
export type { BulkResult, ErrorRecord, Limit, QueueStats };
