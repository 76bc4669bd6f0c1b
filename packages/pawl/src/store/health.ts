/**
 * Facts about the health of a database with runs. `store/postgres/health.ts` reads them and
 * `pawl doctor` judges them. Times are by the database clock. Types only.
 */

import type { ScheduleHealth } from "./schedule-store.js";

/**
 * A transaction that has been open for long. Vacuum cannot remove rows that died since it began.
 */
export interface OpenTransactionFact {
  readonly pid: number;
  readonly application: string;
  readonly user: string;
  readonly state: string;
  readonly ageMs: number;
}

/** A prepared transaction. It holds back vacuum too, and survives restarts. */
export interface PreparedFact {
  readonly id: string;
  readonly ageMs: number;
}

/** A replication slot. It holds back vacuum too, and survives restarts. */
export interface SlotFact {
  readonly name: string;
  readonly isActive: boolean;
  /** It keeps the dead rows of this many transactions. */
  readonly xminAge: number | null;
  readonly keptWalBytes: number;
}

export interface ServerHealth {
  /** 180004 is 18.4. */
  readonly versionNumber: number;
  readonly version: string;
  readonly isStandby: boolean;
  readonly roundTripMs: number;
  /** The database clock minus ours, and the error of that measurement. */
  readonly skewMs: number;
  readonly skewErrorMs: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly connections: number;
  /** Whether the role sees the sessions of other roles. If not, `transactions` has only its own. */
  readonly seesSessions: boolean;
  readonly transactions: readonly OpenTransactionFact[];
  readonly prepared: readonly PreparedFact[];
  readonly slots: readonly SlotFact[];
}

export interface TableFact {
  readonly name: string;
  readonly live: number;
  readonly dead: number;
  readonly vacuumedAt: string | null;
  readonly isAutovacuumOff: boolean;
}

/** A worker without heartbeats for its lease that still holds claims. */
export interface DeadWorkerFact {
  readonly id: string;
  readonly claims: number;
  /** null: it has no row in `workers`. */
  readonly silentMs: number | null;
}

export interface UnservedFact {
  readonly name: string;
  readonly version: number;
  /** null: unknown until a worker registers the definition. */
  readonly queue: string | null;
  readonly runs: number;
  readonly dueMs: number;
}

/** A run that made claims fail and was set aside. */
export interface SetAsideFact {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly code: string | null;
  readonly message: string | null;
}

/** A partition key that blocks runs although no live worker holds it. */
export interface BlockedKeyFact {
  readonly key: string;
  readonly runs: number;
  /** The run of a dead worker that holds it; null: no run holds it. */
  readonly holder: string | null;
}

export interface DueFact {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  readonly lateMs: number;
}

/** A paused queue or definition. */
export interface PauseFact {
  readonly scope: "queue" | "definition";
  readonly name: string;
  /** Of a definition; null: every version. */
  readonly version: number | null;
  readonly by: string;
  readonly reason: string | null;
  readonly ageMs: number;
}

/** A key of a concurrency limit that runs wait for, or that runs name although it is not set. */
export interface LimitFact {
  /** `limit`, or `limit:key`. */
  readonly key: string;
  /** How many runs may execute at once; null: the limit is not set, or has only a rate. */
  readonly concurrent: number | null;
  readonly held: number;
  /** The first five runs that hold a slot. */
  readonly holders: readonly string[];
  /** How many of the holders belong to dead workers. */
  readonly dead: number;
  /** How long the first run in line has waited; null: no run waits, or the first one may begin. */
  readonly waitingMs: number | null;
}

/** A bulk operation that is open, or that failed within the last day. */
export interface BulkFact {
  readonly id: string;
  readonly action: string;
  readonly who: string;
  readonly status: "working" | "failed";
  readonly counted: number;
  /** Runs that it has done, skipped or failed to act on. */
  readonly through: number;
  /** Runs that were locked when it reached them, up to 10,000. */
  readonly locked: number;
  /** How long ago it made progress, or failed. */
  readonly idleMs: number;
  readonly error: string | null;
}

export interface SchemaHealth {
  readonly tables: readonly TableFact[];
  readonly liveWorkers: number;
  readonly deadWorkers: readonly DeadWorkerFact[];
  readonly unserved: readonly UnservedFact[];
  readonly setAside: readonly SetAsideFact[];
  readonly blockedKeys: readonly BlockedKeyFact[];
  /** The first 20, oldest first. */
  readonly pauses: readonly PauseFact[];
  /** Runs that are paused themselves, up to 10,000. */
  readonly pausedRuns: number;
  /** Schedules that nobody fires or serves, that cannot start their runs, or whose last run failed. */
  readonly schedules: readonly ScheduleHealth[];
  /** The first 20 keys of concurrency limits that are worth a look. */
  readonly limits: readonly LimitFact[];
  /** The first 20 bulk operations. */
  readonly bulk: readonly BulkFact[];
  /** The run of a served definition that has been due for the longest time. */
  readonly oldestDue: DueFact | null;
}

/**
 * How a pooler shares connections: there is none, per session, per transaction or per statement.
 */
export type Pooling = "none" | "session" | "transaction" | "statement";
