/**
 * What the protocol's model is made of: the rows that Postgres keeps, the calls in flight, and the processes that
 * make them. Plain data without methods, so that a state can be hashed and compared. Fields that the laws alone
 * read are called ghosts: no operation looks at them. Every other file of the model builds on these types.
 */

type Status = "runnable" | "executing" | "awaiting" | "done" | "cancelled";

export interface RunRow {
  readonly status: Status;
  /** Blocked by its partition key (hold bit 1). */
  readonly isBlocked: boolean;
  /** eligible_at, as far as it matters: past, a deadline still to come, infinity. */
  readonly due: "now" | "deadline" | "never";
  /** Its place among due runs: (priority, eligible_at, id) as one number. */
  readonly order: number;
  readonly step: number;
  readonly awaits: string | null;
  readonly shown: readonly number[];
  readonly timedOut: boolean;
  /** What the wait was resolved with by its first claim; null: it is not resolved. */
  readonly resolved: readonly number[] | null;
  /** locked_by: a worker's number. */
  readonly holder: number | null;
  readonly claimId: number;
  readonly turn: number;
  /** Ghost: which claim this is. Never given twice, whatever happens to the database. */
  readonly epoch: number;
}

export type SignalRow = "absent" | "unconsumed" | "consumed";

/** A worker's row: its lease runs, has passed, or the row is deleted. */
export type WorkerRow = "live" | "lapsed" | "gone";

/** Runs that were swept are null. A signal has the number of its sender, who sends one. */
export interface Database {
  readonly runs: readonly (RunRow | null)[];
  readonly signals: readonly SignalRow[];
  readonly workers: readonly WorkerRow[];
}

export type Outcome =
  | { readonly kind: "keep" | "next"; readonly step: number }
  | { readonly kind: "await"; readonly name: string; readonly step: number; readonly hasTimeout: boolean }
  | { readonly kind: "done" };

/** A claim as its worker remembers it. */
export interface Claim {
  readonly run: number;
  readonly claimId: number;
  readonly epoch: number;
  readonly turn: number;
  readonly step: number;
  /** ctx.awaited */
  readonly awaited: readonly number[];
  readonly timedOut: boolean;
  /** The inbox as it was at the claim; kept only by a mutant that trusts it. */
  readonly loaded: readonly number[];
}

/** A call in flight: its arguments, and what its statements have found out so far. */
export type Call =
  | {
      readonly op: "claim";
      readonly worker: number;
      /** The page: what seemed claimable, in order; then the one that was locked. */
      readonly found: readonly number[];
      /** Runs of the page that awaited; kept only by a mutant that decides by it. */
      readonly late: readonly number[];
      readonly claim: Claim | null;
    }
  | {
      readonly op: "commit";
      readonly worker: number;
      readonly claim: Claim;
      readonly outcome: Outcome;
      /** False once its worker has sent the outcome again: nobody waits for this answer. */
      readonly isHeard: boolean;
      /** The signals that the locking statement saw when it began; kept only by a mutant that decides by it. */
      readonly snapshot: readonly number[];
    }
  | { readonly op: "release"; readonly worker: number; readonly claim: Claim }
  | { readonly op: "beat"; readonly worker: number }
  | { readonly op: "signal"; readonly sender: number }
  | { readonly op: "cancel"; readonly run: number }
  | { readonly op: "reap"; readonly dead: readonly number[]; readonly runs: readonly number[] }
  | { readonly op: "repair"; readonly key: string }
  | { readonly op: "sweep"; readonly runs: readonly number[] };

/** A transaction: the call, the micro-step it takes next, its locks, and what it wrote and nobody else sees yet. */
export interface Transaction {
  readonly call: Call;
  readonly at: string;
  readonly locks: readonly string[];
  readonly writes: Writes;
}

/** Whole rows by number. Each is locked by its writer, so nobody else's change can be overwritten. */
export interface Writes {
  readonly runs: { readonly [run: number]: RunRow | null };
  readonly signals: { readonly [sender: number]: SignalRow };
  readonly workers: { readonly [worker: number]: WorkerRow };
}

/**
 * A worker process. `running` executes a step's code, `sent` waits for the answer to an outcome, `releasing` for the
 * answer to a release, `dead` has crashed or has learnt that its lease is gone.
 */
export type WorkerProcess = { readonly phase: "idle" | "dead" } | ClaimingProcess;

export interface ClaimingProcess {
  readonly phase: "running" | "sent" | "releasing";
  readonly claim: Claim;
  /** Ghost: a crash of the database took this claim back. */
  readonly isLost: boolean;
}

type SenderProcess = "ready" | "sending" | "accepted" | "refused";

/** How often each thing may still happen. */
export interface Budget {
  readonly workerCrashes: number;
  readonly lapses: number;
  readonly beats: number;
  readonly resends: number;
  readonly stops: number;
  readonly databaseCrashes: number;
}

export interface State {
  readonly committed: Database;
  /** What a crash of the database would leave; null when there will be none. */
  readonly flushed: Database | null;
  readonly transactions: readonly Transaction[];
  readonly workers: readonly WorkerProcess[];
  readonly senders: readonly SenderProcess[];
  /** Runs that may still be cancelled. */
  readonly cancels: readonly number[];
  readonly budget: Budget;
}

export interface Scenario {
  readonly name: string;
  readonly workers: number;
  readonly runs: readonly { readonly key: string | null; readonly body: Body }[];
  readonly senders: readonly { readonly run: number; readonly name: string }[];
  readonly cancels: readonly number[];
  readonly budget: Budget;
  readonly hasRepair: boolean;
  readonly hasSweep: boolean;
}

/** What a run's step returns, given how many signals it is shown. */
export type Body = (step: number, awaited: number, timedOut: boolean) => Outcome;

export const isTerminal = (row: RunRow): boolean => row.status === "done" || row.status === "cancelled";

export const isDue = (row: RunRow): boolean =>
  (row.status === "runnable" || row.status === "awaiting") && row.due === "now";

export const isClaimable = (row: RunRow | null | undefined): row is RunRow =>
  row !== null && row !== undefined && isDue(row) && !row.isBlocked;
