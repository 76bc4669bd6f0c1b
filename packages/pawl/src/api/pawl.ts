/**
 * `Pawl`: what `connect` gives, the same whether the runs are reached straight in Postgres (`api/client.ts`) or through a server
 * (`api/http-client.ts`). Every call either answers with what is committed or throws one of the errors of `values/errors.ts`.
 */

import type { Checked } from "./check.js";
import type { AnyDefinition, DefinitionOfRun, OutputOf, RunId } from "../define/definition.js";
import type { Duration } from "../values/duration.js";
import type { LimitOptions } from "../local/limits.js";
import type { Queues } from "./queues.js";
import type { CountOptions, ListOptions, Page, Run } from "./runs.js";
import type { Sender } from "./send.js";
import type { Step } from "./steps.js";
import type { OpenTransaction } from "../store/postgres/callers.js";
import type { Subscriptions, Topics } from "./topics.js";
import type { Why } from "./why.js";
import type { Within } from "./within.js";

export interface CancelOptions {
  /** Recorded with the run. */
  readonly reason?: string | undefined;
  /** Cancel all runs below it too. Default false: its children go on. */
  readonly cascade?: boolean | undefined;
}

export interface Cancelled {
  /** How many runs this call has cancelled. */
  readonly cancelled: number;
}

/** A rate limit, as it is stored. */
export interface Limit {
  readonly name: string;
  readonly allowed: number;
  readonly periodMs: number;
  readonly burst: number;
}

export interface ResultOptions {
  /** How long to wait for the end of the run. Default: for ever. */
  readonly timeout?: Duration | undefined;
}

export interface Pawl {
  /** Starts a run of a definition, or of one known by name only. Resolves when it is committed. */
  readonly start: Sender["start"];
  /** Starts up to 10,000 runs in one statement and answers in the same order. Conflicting keys start none of them. */
  readonly startMany: Sender["startMany"];
  /**
   * Sends a signal: it is in the run's inbox for good when this resolves, and wakes the run if it awaits it. With a `dedupKey`
   * a second delivery is a no-op (`delivered` is false). Throws `RunNotFound`, `RunEnded` or `InboxFull`.
   */
  readonly signal: Sender["signal"];
  readonly runs: {
    /** The run with this id. Throws `RunNotFound`. */
    get(runId: string): Promise<Run>;
    /** A page of runs, newest first. */
    list(options?: ListOptions): Promise<Page>;
    /** How many runs there are that a listing would show. Reads all of them: for people who look, not for loops. */
    count(options?: CountOptions): Promise<number>;
    /** What a workflow run has recorded, in the order in which its body got it, then what is pending. Throws `RunNotFound`. */
    steps(runId: string): Promise<Step[]>;
    /**
     * Cancels a run, at once and for good; with `cascade` everything below it too. A running step sees `ctx.signal` aborted.
     * Answers how many runs that ended: none, if it was cancelled before. Throws `RunNotFound` or `RunEnded`.
     */
    cancel(runId: string, options?: CancelOptions): Promise<Cancelled>;
  };
  readonly limits: {
    /** Sets a rate limit for everyone; the last writer wins. */
    set(name: string, limit: LimitOptions): Promise<void>;
    /** All rate limits, by name. */
    list(): Promise<Limit[]>;
  };
  /** Queues of messages. */
  readonly queues: Queues;
  /** Publishing to whoever has subscribed. */
  readonly topics: Topics;
  readonly subscriptions: Subscriptions;
  /**
   * The same `start`, `startMany` and `signal`, written by an open transaction of yours: a client of pg, or what a transaction of
   * postgres.js, Kysely, Drizzle, Knex or Prisma passes to its function. It counts when you commit; after a rollback it
   * never was. An error of the database aborts the transaction, as it does for your own statements.
   */
  within(tx: OpenTransaction): Within;
  /**
   * Would the open runs of these definitions go on with this code? Gives those that would not, and why. Calls no function of any
   * step; the code of workflows between their steps does run. Writes nothing.
   */
  check(definitions: readonly AnyDefinition[]): Promise<Checked>;
  /** Why a run is not making progress, as data and in a sentence (`text`). Throws `RunNotFound`. */
  why(runId: string): Promise<Why>;
  /** The output of a run, once it is done. Throws `RunFailed`, `RunCancelled`, `ResultTimeout` or `RunNotFound`. */
  result<Id extends RunId>(runId: Id, options?: ResultOptions): Promise<OutputOf<DefinitionOfRun<Id>>>;
  /** Ends the connections. Whoever still waits for a result gets `Unavailable`. */
  close(): Promise<void>;
}
