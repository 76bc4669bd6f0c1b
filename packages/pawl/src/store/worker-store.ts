/**
 * The calls of a worker: register, claim, commit, record, release, recover. Each is one transaction
 * and answers after it is committed. Values are JSON text. Expected races are answers (`Verdict`),
 * never errors. An error means that the call as a whole failed, or, if it is `Unavailable`, that
 * its outcome is unknown. `postgres/` and `http/` implement it.
 */

import type { Transaction } from "../define/transaction.js";
import type { Phase } from "../values/phase.js";
import type { ClientStore } from "./client-store.js";
import type { JournalEntry, ListedStep, RecordVerdict } from "./journal.js";
import type { Claim, Claimable, ClaimedRun, StoredSignal } from "./runs.js";
import type { Commit, Verdict } from "./transitions.js";

/** Definitions, by name and version. */
export interface Served {
  readonly names: readonly string[];
  readonly versions: readonly number[];
}

/** How far a claim has searched: the next claim may begin there. */
export type Floor = readonly [priority: number, microseconds: number] | null;

export interface ClaimRequest extends Claim, Served {
  readonly queue: string;
  readonly floor: Floor;
  /** Search from the floor on only: a call searched the part before it a moment ago. */
  readonly bounded?: boolean;
  readonly limit: number;
  /**
   * If there is nothing to claim, a store that can wait does so, at most this long or until the
   * signal aborts.
   */
  readonly wait?: { readonly longestMs: number; readonly signal: AbortSignal } | undefined;
}

export interface Claimed {
  readonly runs: readonly ClaimedRun[];
  readonly floor: Floor;
  /** With more than 50 definitions: the positions (from 1) of those that had due runs. */
  readonly busy: readonly number[] | null;
  /**
   * The search ended early, by its limit or at runs that cannot be claimed yet: another call may
   * find more.
   */
  readonly more: boolean;
  /** When the next run is due, if there is nothing to claim now. */
  readonly dueMs: number | null;
  /** When the next schedule is due; null: there is none; undefined: this claim did not look. */
  readonly scheduleMs?: number | null | undefined;
  /** How many runs their rate limits postponed. */
  readonly throttled: number;
  /** Runs that made the claim fail and are set aside. */
  readonly setAside?: readonly RunSetAside[];
}

/** A run that cannot be claimed, and the error of the database. */
export interface RunSetAside {
  readonly runId: string;
  readonly code: string;
  readonly message: string;
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
    /** Missing or null: no deadline. */
    readonly timeoutMs?: number | null;
    /** What its code declares, as JSON; missing: nothing. */
    readonly declared?: string | null;
  }[];
}

/** An open transaction in which user code writes. The worker must commit it or roll it back. */
export interface StoreTransaction {
  readonly tx: Transaction;
  /**
   * The connection was lost before the commit began, by no fault of the user's code: nothing was
   * written. Known once the transaction is rolled back.
   */
  isLost(): boolean;
  /**
   * The user's SQL has changed settings of its transaction, such as its role: a refusal may then be
   * its own fault.
   */
  hasSettings(): boolean;
  /**
   * Writes into a journal, inside the transaction. Like `apply` and `commit` it throws the mistake
   * of the step (it ended the transaction, or went on after an error), or `Unavailable` if the
   * database could not do it now, whatever the step did.
   */
  record(entry: JournalEntry): Promise<RecordVerdict>;
  /** Writes an outcome, inside the transaction. */
  apply(commit: Commit): Promise<{ verdict: Verdict; claimable: Claimable[] }>;
  /**
   * Throws the database's error; `Refused` if the database rolled back for a reason that is not the
   * step's; another `Unavailable` if the outcome of the commit is unknown.
   */
  commit(): Promise<void>;
  /** Never throws. */
  rollback(): Promise<void>;
}

export interface WorkerStore extends Pick<ClientStore, "setLimit" | "bringForward"> {
  /** Begins a transaction for user code. */
  begin(): Promise<StoreTransaction>;
  register(registration: Registration): Promise<void>;
  /**
   * The worker has stopped: releases its claims. Answers how many runs stay claimed because
   * somebody locked them.
   */
  unregister(workerId: string): Promise<number>;
  claim(request: ClaimRequest): Promise<Claimed>;
  /** At most one transition per run in one call. `patient: false` never waits for a lock. */
  commit(
    commits: readonly Commit[],
    options: { patient: boolean },
  ): Promise<{ verdicts: Verdict[]; claimable: Claimable[] }>;
  /** Writes into the journals of claimed workflow runs. `patient: false` never waits for a lock. */
  record(entries: readonly JournalEntry[], options: { patient: boolean }): Promise<RecordVerdict[]>;
  /** A page of a run's journal after a name, ordered by name; empty at the end. */
  journal(runId: string, after: string): Promise<ListedStep[]>;
  /** The seq of the last signal of each of these runs. */
  inboxSeqs(runIds: readonly string[]): Promise<Map<string, number>>;
  /** A page of a claimed run's inbox, oldest first; empty at the end. */
  inbox(runId: string, range: { after: number; upTo: number }): Promise<StoredSignal[]>;
  /** A page of the children of a claimed run's last spawn, in order; empty at the end. */
  children(runId: string, after: number): Promise<StoredChild[]>;
  /** Releases claims without an outcome. Answers which were released. */
  release(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]>;
  /** The runs among these whose claims are still held. */
  held(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]>;
  /** The runs among these claims that are paused: themselves, their queue or their definition. */
  paused(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]>;
  /** All claims of a worker: the claim id by run id. */
  heldClaims(workerId: string): Promise<Readonly<Record<string, string>>>;
  /** Ends the claims of dead workers. With `repairs` it also repairs stuck runs. */
  recover(look: {
    readonly limit: number;
    readonly repairs: boolean;
    /** Where the last call stopped, as it answered. */
    readonly marks: string | null;
  }): Promise<Recovered>;
  /**
   * Fails those of these runs that are past their deadline. Answers them, and how long until the
   * next deadline of the others; null: none has one.
   */
  failOverdue(runIds: readonly string[]): Promise<{
    readonly failed: readonly OverdueRun[];
    readonly claimable: readonly Claimable[];
    readonly dueMs: number | null;
  }>;
  /**
   * Deletes terminal runs past their retention. Answers how many, and where it stopped, null at the
   * end.
   */
  sweep(limit: number, after?: string | null): Promise<{ swept: number; last: string | null }>;
  /** Does one batch of a bulk operation. `again`: there is more to do. `woke`: runs became claimable. */
  workBulk(
    limit: number,
  ): Promise<{ readonly again: boolean; readonly woke: boolean; readonly batch: BulkBatch | null }>;
}

/** How many runs a batch of a bulk operation has done, skipped and failed to act on. */
export interface BulkBatch {
  readonly id: string;
  readonly action: string;
  readonly done: number;
  readonly skipped: number;
  readonly failed: number;
}

/** A run that failed because its deadline has passed. */
export interface OverdueRun {
  readonly runId: string;
  readonly name: string;
  readonly parentId: string | null;
  /** When it was started, by the database clock. */
  readonly startedMs: number;
  /** The recorded error, as JSON. */
  readonly error: string;
}

export interface Recovered {
  /** The runs that failed because their deadline has passed. */
  readonly overdue: readonly OverdueRun[];
  /** How many runs of dead workers were freed. */
  readonly reaped: number;
  /** The queues that got work by a repair. */
  readonly queues: readonly string[];
  readonly marks: string | null;
  /** There may be more to do at once. */
  readonly again: boolean;
  /** Some runs are blocked by their keys. */
  readonly isWaited: boolean;
  /** There are open bulk operations. */
  readonly hasBulk: boolean;
  /** Until then no lease of a known worker ends, and no known deadline passes. */
  readonly dueMs: number;
}
