/**
 * The boundary between the engine and where runs are kept. Everything durable happens behind these calls; each is
 * one transaction and answers only after it is committed. `postgres/` carries them out. Values cross it as JSON
 * text, encoded and decoded by the callers. Expected races are answers (`Verdict`), never errors; an error means
 * that the call as a whole is known to have failed, or, if it is `Unavailable`, that nothing is known.
 */

/** The precise status of a run. */
export type Phase =
  | "runnable"
  | "executing"
  | "awaiting_signal"
  | "awaiting_children"
  | "done"
  | "failed"
  | "cancelled";

export interface NewRun {
  readonly name: string;
  /** null: started by name, the store resolves version, kind, queue, priority and retention. */
  readonly version: number | null;
  readonly kind: string | null;
  readonly queue: string | null;
  readonly priority: number | null;
  readonly input: string;
  readonly step: string | null;
  readonly delayMs: number | null;
  readonly at: Date | null;
  readonly retentionMs: number | null;
  readonly idempotencyKey: string | null;
  readonly uniqueKey: Uint8Array | null;
  readonly uniqueScope: readonly Phase[] | null;
  /** Insert it already claimed (with the claim of the call). */
  readonly direct: boolean;
}

export interface StartedRun {
  readonly runId: string;
  readonly created: boolean;
  readonly phase: Phase;
  /** The holder of the idempotency key, when another run holds the unique key: nothing was started. */
  readonly conflict: string | null;
}

/** A worker's claim: the random id is made anew for every call that claims. */
export interface Claim {
  readonly workerId: string;
  readonly claimId: string;
}

/** Where a claim begins to look: at the low-water mark of the last call, or behind what it had to pass over. */
export interface LookFrom {
  readonly floor: readonly [priority: number, microseconds: number] | null;
  readonly after: readonly [priority: number, microseconds: number, id: string] | null;
}

export interface ClaimRequest extends Claim, LookFrom {
  readonly queue: string;
  readonly limit: number;
  readonly names: readonly string[];
  readonly versions: readonly number[];
}

export interface ClaimedRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly step: string | null;
  readonly priority: number;
  readonly attempt: number;
  readonly crashes: number;
  /** JSON; given only while there is no state. */
  readonly input: string | null;
  readonly state: string | null;
  readonly uniqueLost: boolean;
}

export interface Claimed extends LookFrom {
  readonly runs: readonly ClaimedRun[];
  /** Whether the limit of runs or bytes ended it: another call may find more. */
  readonly more: boolean;
  /** When the next run is due, if nothing is left to claim now. */
  readonly dueMs: number | null;
}

/** What a step's outcome makes of its run. `state: null` leaves the stored state as it is. */
export type Transition =
  | { readonly kind: "keep"; readonly step: string; readonly state: string | null }
  | {
      readonly kind: "next";
      readonly step: string;
      readonly state: string | null;
      readonly priority: number | null;
    }
  | {
      readonly kind: "retry";
      readonly step: string | null;
      readonly state: string | null;
      readonly delayMs: number;
      readonly error: string | null;
    }
  | { readonly kind: "done"; readonly step: string | null; readonly result: string }
  | { readonly kind: "stop"; readonly step: string | null; readonly error: string };

export interface Commit {
  readonly runId: string;
  readonly claimId: string;
  readonly turn: number;
  readonly transition: Transition;
}

export type Verdict =
  /** Committed; the run re-entered its unique scope while its key was taken, and gave the key up. */
  | { readonly kind: "committed"; readonly uniqueLost: boolean }
  /** Committed by an earlier call whose answer was lost. */
  | { readonly kind: "already" }
  /** The claim is gone: nothing was written. */
  | { readonly kind: "stale" }
  /** Somebody's open transaction holds the run: nothing was written, ask again later. */
  | { readonly kind: "busy" }
  /** The database refused the values: nothing was written, the claim goes on. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

export interface Registration {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly info: string;
  readonly definitions: readonly {
    readonly name: string;
    readonly version: number;
    readonly kind: string;
    readonly queue: string;
    readonly priority: number;
    readonly retentionMs: number;
  }[];
}

export interface EndedRun {
  readonly runId: string;
  /** null: there is no such run. */
  readonly phase: "done" | "failed" | "cancelled" | null;
  readonly result: string | null;
  readonly error: string | null;
}

export interface StoredRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly kind: string | null;
  readonly phase: Phase;
  readonly step: string | null;
  readonly attempt: number;
  readonly queue: string;
  readonly priority: number;
  readonly input: string;
  readonly state: string | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly parentId: string | null;
  readonly idempotencyKey: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  readonly eligibleAt: Date | null;
  readonly expiresAt: Date | null;
}

export interface RunFilter {
  readonly name: string | null;
  readonly version: number | null;
  readonly phases: readonly Phase[] | null;
  readonly queue: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
  readonly before: { readonly startedAt: string; readonly runId: string } | null;
  readonly limit: number;
}

export interface MigrationResult {
  readonly schema: string;
  readonly from: number;
  readonly to: number;
  /** One line per thing done, empty if nothing was to do. */
  readonly steps: readonly string[];
}

/** What callers of the public API need. */
export interface ClientStore {
  start(
    runs: readonly NewRun[],
    options: { allOrNothing: boolean; claim: Claim | null },
  ): Promise<StartedRun[]>;
  get(runIds: readonly string[]): Promise<StoredRun[]>;
  list(filter: RunFilter): Promise<{ runs: StoredRun[]; last: { startedAt: string; runId: string } | null }>;
  /** Of these runs, those that have ended or do not exist. */
  ended(runIds: readonly string[]): Promise<EndedRun[]>;
}

/** What a worker needs. */
export interface WorkerStore {
  register(registration: Registration): Promise<void>;
  unregister(workerId: string): Promise<void>;
  claim(request: ClaimRequest): Promise<Claimed>;
  /** At most one transition per run in one call. `patient: false` never waits for a lock. */
  commit(commits: readonly Commit[], options: { patient: boolean }): Promise<Verdict[]>;
  /** Lets claims go without an outcome and answers which were let go. */
  release(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]>;
  /** Ends the claims of dead workers and answers how many runs that freed. */
  reap(limit: number): Promise<number>;
  /** Places runs that waited for their definition and answers the queues that got work. */
  place(limit: number): Promise<string[]>;
  /** Deletes terminal runs past their retention and answers how many. */
  sweep(limit: number): Promise<number>;
}
