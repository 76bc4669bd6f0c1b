/**
 * The boundary between the engine and where runs are kept. Everything durable happens behind these calls; each is
 * one transaction and answers only after it is committed. `postgres/` carries them out. Values cross it as JSON
 * text, encoded and decoded by the callers. Expected races are answers (`Verdict`), never errors; an error means
 * that the call as a whole is known to have failed, or, if it is `Unavailable`, that nothing is known.
 */

import type { Json } from "../values/json-types.js";
import type { Phase, Status } from "../values/phase.js";
import type { Transaction } from "../define/transaction.js";
import type { WhyFacts } from "./why-facts.js";
import type { JournalEntry, ListedStep, RecordVerdict, StepPlace, StoredStep } from "./journal.js";

export interface NewRun {
  readonly name: string;
  /** null: started by name, the store takes the version that is served. */
  readonly version: number | null;
  /** null: started by name, the store takes it from the definition, and queue, priority and retention where they are not given. */
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
  readonly partitionKey: string | null;
  /** `limit`, or `limit:key`. */
  readonly rateLimit: string | null;
  readonly weight: number | null;
  /** The trace that its spans belong to, as a `traceparent`; null: one of its own. */
  readonly trace: string | null;
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

/** Definitions, by name and version. */
export interface Served {
  readonly names: readonly string[];
  readonly versions: readonly number[];
}

/** The low-water mark of a call: the next may begin to look there. */
export type Floor = readonly [priority: number, microseconds: number] | null;

export interface ClaimRequest extends Claim, Served {
  readonly queue: string;
  readonly floor: Floor;
  /** Look from the mark on alone: all that lies before it was looked at a moment ago. */
  readonly bounded?: boolean;
  readonly limit: number;
  /** If there is nothing to claim: until there is, at most this long, or until it is not wanted any more. Where claims can wait. */
  readonly wait?: { readonly longestMs: number; readonly signal: AbortSignal } | undefined;
}

export interface ClaimedRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly step: string | null;
  readonly priority: number;
  readonly attempt: number;
  readonly crashes: number;
  readonly parentId: string | null;
  readonly partitionKey: string | null;
  /** The wait that led to this step ended by its timeout. */
  readonly timedOut: boolean;
  /** How many children the spawn that led to this step had; null: no spawn did. */
  readonly children: number | null;
  /** The seq of the last signal delivered. */
  readonly inboxSeq: number;
  /** What is in the inbox; null: too much to come along, to be read page by page. */
  readonly inbox: readonly StoredSignal[] | null;
  /** JSON; given only while there is no state. */
  readonly input: string | null;
  readonly state: string | null;
  /** What a workflow has recorded; null: too much to come along, to be read page by page. */
  readonly journal: readonly StoredStep[] | null;
  /** The names of the signals in a workflow's inbox; null: too many to tell. */
  readonly waiting: readonly string[] | null;
  readonly uniqueLost: boolean;
  /** When it was started, on the clock of the database. */
  readonly startedMs: number;
  readonly trace: string | null;
}

/** A signal in an inbox. */
export interface StoredSignal {
  readonly seq: number;
  readonly name: string;
  readonly payload: Json;
  readonly receivedAt: Date;
  /** The await that led to this step wants it. */
  readonly matched: boolean;
}

/** A child of a spawn. */
export interface StoredChild {
  readonly position: number;
  readonly runId: string;
  readonly name: string;
  readonly phase: Phase;
  readonly result: string | null;
  readonly error: string | null;
  readonly created: boolean;
}

/** Runs of a queue have become claimable, none of them before this in the order of claims. */
export interface Claimable {
  readonly queue: string;
  readonly priority: number;
  readonly microseconds: number;
}

export interface Claimed {
  readonly runs: readonly ClaimedRun[];
  readonly floor: Floor;
  /** Of more than 50 definitions, the positions (from 1) of those that had due runs. */
  readonly busy: readonly number[] | null;
  /** Whether the limit of runs or bytes ended it, or runs that cannot be claimed yet: another call may find more. */
  readonly more: boolean;
  /** When the next run is due, if nothing is left to claim now. */
  readonly dueMs: number | null;
  /** How many runs were put off by their rate limits. */
  readonly throttled: number;
  /** Runs that made the claim fail, and are set aside. */
  readonly setAside?: readonly RunSetAside[];
}

/** A run that cannot be claimed, and why the database refuses it. */
export interface RunSetAside {
  readonly runId: string;
  readonly code: string;
  readonly message: string;
}

/**
 * What a step's outcome makes of its run. `state: null` leaves the stored state as it is; `consumed` and `shown` are the seqs
 * of the signals that the step saw as awaited.
 */
export type Transition =
  | {
      readonly kind: "keep";
      readonly step: string;
      readonly state: string | null;
      readonly consumed: readonly number[];
    }
  | {
      readonly kind: "next";
      readonly step: string;
      readonly state: string | null;
      readonly priority: number | null;
      /** undefined: as it is. */
      readonly partitionKey: string | null | undefined;
      readonly rateLimit: string | null;
      readonly weight: number | null;
      readonly consumed: readonly number[];
    }
  | {
      readonly kind: "retry";
      readonly step: string | null;
      readonly state: string | null;
      readonly delayMs: number;
      readonly error: string | null;
    }
  /** A workflow has nothing to do until a signal of these names comes, or a child ends, or this time. */
  | {
      readonly kind: "suspend";
      readonly names: readonly string[];
      /** JSON by name. */
      readonly matches: Readonly<Record<string, string>>;
      /** Signals up to this seq are none of those. */
      readonly after: number;
      /** As the store said it; null: none. */
      readonly dueAt: string | null;
      /** The steps that wait, for who asks. */
      readonly steps: readonly string[];
    }
  | {
      readonly kind: "await";
      readonly step: string;
      readonly state: string | null;
      readonly names: readonly string[];
      /** JSON. */
      readonly match: string | null;
      /** null: for ever. */
      readonly delayMs: number | null;
      readonly shown: readonly number[];
    }
  | {
      readonly kind: "spawn";
      readonly step: string;
      readonly state: string | null;
      readonly children: readonly NewRun[];
      readonly consumed: readonly number[];
    }
  | { readonly kind: "done"; readonly step: string | null; readonly result: string }
  | { readonly kind: "stop"; readonly step: string | null; readonly error: string };

export interface Commit {
  readonly runId: string;
  /** The queue of the run, for those who tell others when it falls due again. */
  readonly queue?: string;
  readonly claimId: string;
  readonly turn: number;
  /** The seq of the last signal that the worker has read. */
  readonly inboxSeq: number;
  readonly parentId: string | null;
  /** The key that the claim holds. */
  readonly partitionKey: string | null;
  /** If this frees the key: the claim for the next run in line for it, should the store hand that over at once. */
  readonly next: Claim | null;
  readonly transition: Transition;
}

export type Verdict =
  /**
   * Committed. `uniqueLost`: the run re-entered its unique scope while its key was taken, and gave the key up.
   * `inboxSeq`: the claim is kept and the inbox has more than the worker has read, up to this seq. `handed`: the next run in line
   * for the key, claimed as the commit asked for.
   */
  | {
      readonly kind: "committed";
      readonly uniqueLost: boolean;
      readonly inboxSeq: number | null;
      readonly handed: ClaimedRun | null;
    }
  /** Committed by an earlier call whose answer was lost. `inboxSeq` is the last signal delivered by now. */
  | { readonly kind: "already"; readonly inboxSeq: number }
  /** The claim is gone: nothing was written. */
  | { readonly kind: "stale" }
  /** Somebody's open transaction holds the run: nothing was written, ask again later. */
  | { readonly kind: "busy" }
  /** The database refused the values: nothing was written, the claim goes on. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

export interface Registration {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly queues: readonly string[];
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
  readonly kind: string | null;
  /** The code of its error, or the name of one that has none. */
  readonly error: string | null;
  readonly parentId: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
  readonly before: { readonly startedAt: string; readonly runId: string } | null;
  /** JSON that the input contains. */
  readonly input: string | null;
  readonly limit: number;
}

/** How many runs of a name there are. */
export interface RunCounts {
  readonly name: string;
  readonly counts: Readonly<Record<Status, number>>;
}

/** What the metrics show of a database: a gauge, the values of its labels, and its own. */
export interface StoredGauge {
  readonly gauge: "depth" | "age" | "unserved" | "throttled" | "executing" | "blocked" | "workers";
  readonly first: string | null;
  readonly second: string | null;
  readonly value: number;
}

export interface MigrationResult {
  readonly schema: string;
  readonly from: number;
  readonly to: number;
  /** One line per thing done, empty if nothing was to do. */
  readonly steps: readonly string[];
}

/** What is to be known of a database as a whole. */
export interface DatabaseState {
  /** The same in a database and its copies, until one of them is adopted. */
  readonly identity: string;
  /** Nothing is claimed in it, until it is released or adopted. */
  readonly isHeld: boolean;
  /** It was migrated, or last adopted, elsewhere: this is a fork or a restored backup. */
  readonly isCopy: boolean;
}

/** How a database is copied: block by block through the log; file by file; or so that both share what the file system can share. */
export type CopyMethod = "wal_log" | "file_copy" | "clone";

export interface NewSignal {
  readonly runId: string;
  readonly name: string;
  readonly payload: string;
  readonly dedupKey: string | null;
}

/** Slots of a worker that a signal may fill at once with the run that it wakes. */
export interface Offer extends Claim {
  readonly queues: readonly string[];
}

/** The run that a signal is for. */
export interface SignalTarget {
  readonly name: string;
  readonly trace: string | null;
}

export type SignalVerdict = "delivered" | "duplicate" | "not_found" | "ended" | "full";

export interface Cancellation {
  readonly verdict: "cancelled" | "already" | "ended" | "not_found";
  readonly phase: Phase | null;
  /** The runs that this call has cancelled. */
  readonly runIds: readonly string[];
  /** Their definitions, in the same order. */
  readonly names: readonly string[];
  /** Those of them that gave their unique key up, because another run holds it. */
  readonly lost: readonly { readonly runId: string; readonly name: string; readonly version: number }[];
  readonly claimable: readonly Claimable[];
}

/** A rate limit: tokens per period, and how many at once. */
export interface StoredLimit {
  readonly name: string;
  readonly allowed: number;
  readonly periodMs: number;
  readonly burst: number;
}

/** What callers of the public API need. */
export interface ClientStore {
  /** Starts runs; the call fails rather than wait long for a key that an open transaction is about to take. */
  start(
    runs: readonly NewRun[],
    options: { allOrNothing: boolean; claim: Claim | null },
  ): Promise<StartedRun[]>;
  /**
   * Delivers signals; with `patient: false` the call fails rather than wait long for a locked run. The run that a lone signal
   * wakes is handed over, if that is offered.
   */
  signal(
    signals: readonly NewSignal[],
    options: { patient: boolean; offer?: Offer | null },
  ): Promise<{
    verdicts: SignalVerdict[];
    /** The runs they are for, in the same order; null: there is none. */
    targets: (SignalTarget | null)[];
    claimable: Claimable[];
    handed: { queue: string; run: ClaimedRun } | null;
  }>;
  cancel(runId: string, options: { reason: string | null; cascade: boolean }): Promise<Cancellation>;
  why(runId: string): Promise<WhyFacts | null>;
  /** Sets a limit and answers whether runs that the old one put off are to be brought forward. */
  setLimit(limit: StoredLimit): Promise<boolean>;
  /** Brings forward runs that a limit had put off before it was changed, up to so many; answers how many those were. */
  bringForward(limit: number): Promise<number>;
  limits(): Promise<StoredLimit[]>;
  get(runIds: readonly string[]): Promise<StoredRun[]>;
  journal(runId: string, after: string): Promise<ListedStep[]>;
  /** How many runs there are that a listing would show, on all its pages. */
  count(filter: RunFilter): Promise<number>;
  /** A page, up to the limit and 16 MiB; `last`: where it goes on, null at the end. */
  list(filter: RunFilter): Promise<{ runs: StoredRun[]; last: { startedAt: string; runId: string } | null }>;
  /** The same of the steps of a run. */
  steps(runId: string, after: StepPlace | null): Promise<{ steps: ListedStep[]; last: StepPlace | null }>;
  /** The runs among these that have ended or do not exist, up to 16 MiB of results; `more`: others have too, ask again for the rest. */
  ended(runIds: readonly string[]): Promise<{ runs: EndedRun[]; more: boolean }>;
}

/** An open transaction that user code writes in. It must be ended by one of its two ends. */
export interface StoreTransaction {
  readonly tx: Transaction;
  /** Whether its connection was lost before it was to be committed, by no fault of its own: as if it had never been. Known once it is rolled back. */
  isLost(): boolean;
  /**
   * The user's SQL has changed settings of its transaction, such as its role: what is refused then
   * may be its own fault.
   */
  hasSettings(): boolean;
  /**
   * Writes into a journal, inside of it. Like `apply` and `commit`, throws what the step did wrong
   * (it has ended the transaction, or gone on after an error), or `Unavailable` if the database
   * could not, or would not, do it now, whatever the step did.
   */
  record(entry: JournalEntry): Promise<RecordVerdict>;
  /** Commits an outcome, inside of it. */
  apply(commit: Commit): Promise<{ verdict: Verdict; claimable: Claimable[] }>;
  /**
   * Throws what the database says against it, `Refused` if it is rolled back for a reason that is
   * not the step's, or another `Unavailable` if nobody knows what became of it.
   */
  commit(): Promise<void>;
  /** Never throws. */
  rollback(): Promise<void>;
}

/** What a worker needs. */
export interface WorkerStore extends Pick<ClientStore, "setLimit" | "bringForward"> {
  /** Begins a transaction for user code. */
  begin(): Promise<StoreTransaction>;
  register(registration: Registration): Promise<void>;
  /** The worker has stopped: what it holds is let go. Answers how many runs it holds nevertheless, because somebody has them locked. */
  unregister(workerId: string): Promise<number>;
  claim(request: ClaimRequest): Promise<Claimed>;
  /** At most one transition per run in one call. `patient: false` never waits for a lock. */
  commit(
    commits: readonly Commit[],
    options: { patient: boolean },
  ): Promise<{ verdicts: Verdict[]; claimable: Claimable[] }>;
  /** Writes into the journals of claimed workflow runs. `patient: false` never waits for a lock. */
  record(entries: readonly JournalEntry[], options: { patient: boolean }): Promise<RecordVerdict[]>;
  /** A page of a run's journal after a name, by name; empty at the end. */
  journal(runId: string, after: string): Promise<ListedStep[]>;
  /** The seq of the last signal of each of these runs. */
  inboxSeqs(runIds: readonly string[]): Promise<Map<string, number>>;
  /** A page of a claimed run's inbox, oldest first; empty at the end. */
  inbox(runId: string, range: { after: number; upTo: number }): Promise<StoredSignal[]>;
  /** A page of the children of a claimed run's last spawn, in order; empty at the end. */
  children(runId: string, after: number): Promise<StoredChild[]>;
  /** Lets claims go without an outcome and answers which were let go. */
  release(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]>;
  /** Which of these claims are held still, by run. */
  held(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]>;
  /** Everything that a worker holds: the ids of runs, each with that of its claim. */
  holdings(workerId: string): Promise<Readonly<Record<string, string>>>;
  /** Ends the claims of dead workers; with `repairs`, puts right what waits without need. */
  recover(look: {
    readonly limit: number;
    readonly repairs: boolean;
    /** Where the last look stopped, as it answered itself. */
    readonly marks: string | null;
  }): Promise<Recovered>;
  /** Deletes terminal runs past their retention; answers how many, and where it stopped, null at the end. */
  sweep(limit: number, after?: string | null): Promise<{ swept: number; last: string | null }>;
}

export interface Recovered {
  /** How many runs were freed of dead workers. */
  readonly reaped: number;
  /** The queues that got work otherwise. */
  readonly queues: readonly string[];
  readonly marks: string | null;
  /** There may be more to do at once. */
  readonly again: boolean;
  /** Runs are blocked by their keys. */
  readonly isWaited: boolean;
  /** Until then no lease of a known worker will have passed. */
  readonly dueMs: number;
}
