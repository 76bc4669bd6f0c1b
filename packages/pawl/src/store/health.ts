/**
 * What can be known about the health of a database that holds runs: facts, not judgements. Read by `store/postgres/health.ts`, judged by
 * `pawl doctor`. Times are the database's.
 */

/** A transaction that has been open for long: nothing that ended since it began can be cleaned up. */
export interface OpenTransactionFact {
  readonly pid: number;
  readonly application: string;
  readonly user: string;
  readonly state: string;
  readonly ageMs: number;
}

/** A prepared transaction or a replication slot keeps vacuum back just as well, and survives restarts. */
export interface PreparedFact {
  readonly id: string;
  readonly ageMs: number;
}

export interface SlotFact {
  readonly name: string;
  readonly isActive: boolean;
  /** It keeps the rows of this many transactions. */
  readonly xminAge: number | null;
  readonly keptWalBytes: number;
}

export interface ServerHealth {
  /** 180004 is 18.4. */
  readonly versionNumber: number;
  readonly version: string;
  readonly isStandby: boolean;
  readonly roundTripMs: number;
  /** The clock of the database minus ours, and how wrong that may be. */
  readonly skewMs: number;
  readonly skewErrorMs: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly connections: number;
  /** Whether the role sees what sessions of other roles do; if not, `transactions` holds its own alone. */
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

/** A worker that was not heard of for its lease and still holds claims. */
export interface DeadWorkerFact {
  readonly id: string;
  readonly claims: number;
  /** null: it has no row any more. */
  readonly silentMs: number | null;
}

export interface UnservedFact {
  readonly name: string;
  readonly version: number;
  /** null: not known before a worker registers the definition. */
  readonly queue: string | null;
  readonly runs: number;
  readonly dueMs: number;
}

/** A run that made claims fail, and was set aside. */
export interface SetAsideFact {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly code: string | null;
  readonly message: string | null;
}

/** A partition key that runs wait for although no live worker holds it. */
export interface BlockedKeyFact {
  readonly key: string;
  readonly runs: number;
  /** The dead worker's run that holds it; null: nobody holds it. */
  readonly holder: string | null;
}

export interface DueFact {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  readonly lateMs: number;
}

export interface SchemaHealth {
  readonly tables: readonly TableFact[];
  readonly liveWorkers: number;
  readonly deadWorkers: readonly DeadWorkerFact[];
  readonly unserved: readonly UnservedFact[];
  readonly setAside: readonly SetAsideFact[];
  readonly blockedKeys: readonly BlockedKeyFact[];
  /** The run of a served definition that is due for longest. */
  readonly oldestDue: DueFact | null;
}

/** How connections are shared: by nobody, by a pooler that gives each client a connection of its own, or by one that does not. */
export type Pooling = "none" | "session" | "transaction" | "statement";
