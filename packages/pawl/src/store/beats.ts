/** The calls of a heartbeat, apart from the other calls of a worker: they are made by a thread of their own. */

/** What the database says at a beat, perhaps through a server. Runs with the ids of their claims. */
export interface BeatAnswer {
  /** False: it came after the lease had passed. */
  readonly alive: boolean;
  /** Runs that this worker holds and that were cancelled. */
  readonly cancelled: Readonly<Record<string, string>>;
  /** The runs that this worker holds by claims from the id `since` on; null: not asked for. */
  readonly held: Readonly<Record<string, string>> | null;
  /** Nothing is to be claimed in this database, and no further step begun. */
  readonly databaseHeld: boolean;
  /** The timeline that the server of the database writes: another one after a failover. */
  readonly timeline: string | null;
}

/** One line for beats, of any worker of its address, one at a time. */
export interface Beats {
  /** Fails if the answer takes longer than `patienceMs`; then the line is not to be used again. */
  beat(workerId: string, since: string | null, patienceMs: number): Promise<BeatAnswer>;
  end(): Promise<void>;
}
