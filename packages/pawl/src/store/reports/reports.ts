/**
 * Reports for people who operate Pawl: charts, failures in groups, waiting runs, held keys and slots,
 * definitions and workers. Each is bounded, whatever the database holds. `postgres-reports.ts` reads
 * them from PostgreSQL, `store/http/http-reports.ts` from a server. Times are by the database clock.
 * Types only.
 */

import type { MachineGraph } from "../../define/machine-graph.js";
import type { Phase } from "../../values/phase.js";

/**
 * The prefixes of the token that asks: it sees names and queues that begin with one of them; null:
 * all.
 */
export interface Prefixes {
  readonly names: readonly string[] | null;
  readonly queues: readonly string[] | null;
}

export interface SeriesQuery {
  readonly by: "minute" | "hour";
  /** null: an hour (or, by hour, a day) before `to`. */
  readonly from: Date | null;
  /** null: now. */
  readonly to: Date | null;
  readonly name: string | null;
  readonly queue: string | null;
}

/** One minute or hour of a chart. */
export interface SeriesPoint {
  /** When the minute or hour begins. */
  readonly at: Date;
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** From the start to the end of the runs that ended then; half of them took at most this long. */
  readonly p50Ms: number | null;
  /** 95 of 100 took at most this long; null: no run ended. */
  readonly p95Ms: number | null;
  /** The most due runs that waited for a worker at one time, up to 10,000; null: nobody looked. */
  readonly backlog: number | null;
}

export interface Series {
  readonly by: "minute" | "hour";
  readonly from: Date;
  readonly to: Date;
  /** The counts are complete up to this time, some seconds ago; null: nothing is counted yet. */
  readonly countedTo: Date | null;
  /** Oldest first, also those in which nothing happened. */
  readonly points: readonly SeriesPoint[];
}

export interface FailuresQuery {
  /** Rounded down to an hour; null: a day ago. */
  readonly since: Date | null;
  readonly name: string | null;
  readonly limit: number;
}

/** The failures of one definition with one error code in one step. */
export interface FailureGroup {
  readonly name: string;
  /** The code of the error, or its name if it has no code: the filter `error` of `runs.list`. */
  readonly code: string;
  readonly step: string | null;
  /** Of the last failure, at most 500 characters. */
  readonly message: string | null;
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly lastRunId: string;
}

export interface Failures {
  /** The largest group first. */
  readonly failures: readonly FailureGroup[];
}

/** A page of a report. A page may be short, or empty, although there is a next one. */
export interface ReportPage {
  /** As the page before gave it; null: the first page. */
  readonly cursor: string | null;
  readonly limit: number;
}

export interface WaitingQuery extends ReportPage {
  readonly name: string | null;
  /** Runs that await this signal. */
  readonly signal: string | null;
}

/** A run that waits for a signal. */
export interface WaitingRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly kind: string;
  readonly queue: string;
  readonly step: string | null;
  /** The names of the signals that it awaits. */
  readonly signals: readonly string[];
  readonly since: Date | null;
  /** When it stops waiting; null: never. */
  readonly deadline: Date | null;
  readonly startedAt: Date;
  readonly tags: Readonly<Record<string, string>>;
}

export interface Waiting {
  /** The newest start first. */
  readonly runs: readonly WaitingRun[];
  readonly cursor: string | null;
}

/** A run that holds a key or slot, or is the first in line for it. */
export interface KeyRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  readonly phase: Phase;
  /** The worker that executes it. */
  readonly worker: string | null;
}

/** A partition key that a run holds or waits for. */
export interface PartitionKey {
  readonly key: string;
  readonly holder: KeyRun | null;
  /** How many runs it blocks, up to 1,000. */
  readonly waiting: number;
  /** The first of them. */
  readonly first: KeyRun | null;
}

export interface Keys {
  /** In order of the keys. */
  readonly keys: readonly PartitionKey[];
  readonly cursor: string | null;
}

/** One key of a concurrency limit. */
export interface SlotKey {
  /** null: of runs that name no key. */
  readonly key: string | null;
  /** How many slots runs hold. */
  readonly held: number;
  /** How many runs wait for one, up to 1,000. */
  readonly waiting: number;
  /** The first ten that hold one. */
  readonly holders: readonly KeyRun[];
}

export interface Slots {
  readonly keys: readonly SlotKey[];
  readonly cursor: string | null;
}

export interface DefinitionsQuery extends ReportPage {
  readonly name: string | null;
}

/**
 * What the code of a definition declares: the graph of a machine. Nothing for jobs and workflows, and if
 * an older release registered it.
 */
export type Declared = Partial<MachineGraph>;

/** A version of a definition that a worker has registered. */
export interface RegisteredDefinition {
  readonly name: string;
  readonly version: number;
  readonly kind: string;
  readonly queue: string;
  readonly priority: number;
  readonly retentionMs: number;
  /** The default deadline; null: none. */
  readonly timeoutMs: number | null;
  readonly registeredAt: Date;
  /** How many live workers serve it. */
  readonly workers: number;
  readonly declared: Declared;
}

export interface DefinitionPage {
  /** By name and version. */
  readonly definitions: readonly RegisteredDefinition[];
  readonly cursor: string | null;
}

/** A worker that has registered and not unregistered. */
export interface WorkerInfo {
  readonly id: string;
  readonly host: string | null;
  readonly pid: number | null;
  /** Such as "node v22.1.0". */
  readonly runtime: string | null;
  readonly serves: readonly { readonly name: string; readonly version: number }[];
  readonly queues: readonly string[];
  readonly leaseMs: number;
  readonly registeredAt: Date;
  /** Its last heartbeat. */
  readonly seenAt: Date;
  readonly leaseUntil: Date;
  readonly alive: boolean;
  /** How many runs it executes, up to 1,000. */
  readonly claims: number;
  /** The token that registered it through a server. */
  readonly token: string | null;
}

export interface Workers {
  /** By id. */
  readonly workers: readonly WorkerInfo[];
  readonly cursor: string | null;
}

export interface ReportTransport {
  series(query: SeriesQuery): Promise<Series>;
  failures(query: FailuresQuery): Promise<Failures>;
  waiting(query: WaitingQuery): Promise<Waiting>;
  keys(page: ReportPage): Promise<Keys>;
  /** The keys of a concurrency limit. */
  slots(limit: string, page: ReportPage): Promise<Slots>;
  definitions(query: DefinitionsQuery): Promise<DefinitionPage>;
  workers(page: ReportPage): Promise<Workers>;
}
