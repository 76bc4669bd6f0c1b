/**
 * The calls of a heartbeat. They are apart from the other calls of a worker, because a separate
 * thread makes them.
 */

/** The answer to a heartbeat. Runs come with the ids of their claims. */
export interface HeartbeatAnswer {
  /** False: the heartbeat came after the lease had ended. */
  readonly alive: boolean;
  /** Runs of this worker that were cancelled. */
  readonly cancelled: Readonly<Record<string, string>>;
  /**
   * The runs that this worker holds by claims from the id `since` on; null: the call did not ask
   * for them.
   */
  readonly held: Readonly<Record<string, string>> | null;
  /** The database is held: claim nothing and begin no step. */
  readonly databaseHeld: boolean;
  /** The timeline of PostgreSQL. It changes with a failover. */
  readonly timeline: string | null;
  /** Why this release can no longer work with the schema of the database: claim nothing. */
  readonly schemaProblem: string | null;
}

/** One connection for heartbeats of any worker of its address, one at a time. */
export interface HeartbeatConnection {
  /** Fails if the answer takes longer than `timeoutMs`. Do not use the connection again then. */
  beat(workerId: string, since: string | null, timeoutMs: number): Promise<HeartbeatAnswer>;
  end(): Promise<void>;
}
