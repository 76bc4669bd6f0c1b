/** The answers of the REST API, as JSON. The library's types say what they are. Types only. */

import type {
  Action as LibraryAction,
  BulkOperation as LibraryBulkOperation,
  BulkResult,
  Declared,
  DefinitionPage as LibraryDefinitionPage,
  ErrorRecord,
  FailureGroup as LibraryFailureGroup,
  Keys,
  Limit,
  PartitionKey,
  QueueStats,
  RegisteredDefinition,
  Run as LibraryRun,
  Schedule as LibrarySchedule,
  ScheduleDetail as LibraryScheduleDetail,
  Series as LibrarySeries,
  SeriesPoint,
  Slots,
  Step as LibraryStep,
  Waiting as LibraryWaiting,
  Why as LibraryWhy,
  Workers as LibraryWorkers,
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
/** The steps of a machine, with the transitions that its code names. */
export type MachineGraph = Required<Declared>;
export type Definition = Sent<RegisteredDefinition>;
export type DefinitionPage = Sent<LibraryDefinitionPage>;
export type FailureGroup = Sent<LibraryFailureGroup>;
export type Point = Sent<SeriesPoint>;
export type Series = Sent<LibrarySeries>;
export type Waiting = Sent<LibraryWaiting>;
export type WaitingRun = Waiting["runs"][number];
export type Workers = Sent<LibraryWorkers>;
export type Worker = Workers["workers"][number];
export interface Finding {
  readonly check: string;
  readonly level: "ok" | "note" | "wrong";
  readonly text: string;
  readonly fix: string | null;
}
export type { BulkResult, ErrorRecord, Keys, Limit, PartitionKey, QueueStats, Slots };
