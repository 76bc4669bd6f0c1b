/**
 * `Pawl`: the interface of the client that `connect` returns, the same for a database and a server.
 * Every call resolves after its effect is committed, or throws one of the errors of
 * `values/errors.ts`. `api/client.ts` implements it.
 */

import type { Checked } from "./check.js";
import type { AnyDefinition, DefinitionOfRun, OutputOf, RunId } from "../define/definition.js";
import type { Duration } from "../values/duration.js";
import type { LimitOptions } from "../local/limits.js";
import type { Actions } from "../operate/actions.js";
import type { Bulk, BulkOperation, BulkOptions, BulkPreview } from "../operate/bulk.js";
import type { Reports } from "../operate/reports.js";
import type { RerunOptions } from "../operate/rerun.js";
import type { Definitions, QueuePauses, RunPauses } from "./cancel-and-pause.js";
import type { Queues } from "./queues.js";
import type { CountOptions, FindOptions, ListOptions, Page, Run } from "./runs.js";
import type { StoredLimit } from "../store/runs.js";
import type { Schedules } from "../schedules/schedules.js";
import type { Sender } from "./send.js";
import type { Step } from "./steps.js";
import type { OpenTransaction } from "../store/postgres/callers.js";
import type { Subscriptions, Topics } from "./topics.js";
import type { Why } from "./why.js";
import type { Within } from "./within.js";

export interface CancelOptions {
  /** Stored with the run and passed to `ctx.signal`. */
  readonly reason?: string | undefined;
  /** Also cancel its children, and their children. Default false: the children continue. */
  readonly cascade?: boolean | undefined;
}

/** The run that repeats another one, of the same definition. */
export interface Rerun<Definition extends AnyDefinition = AnyDefinition> {
  readonly runId: RunId<Definition>;
  /** false: an earlier rerun with the same idempotency key started it. */
  readonly created: boolean;
}

export interface Cancelled {
  /** How many runs this call has cancelled. */
  readonly cancelled: number;
}

/** A rate limit, as it is stored. */
export type Limit = StoredLimit;

export interface ResultOptions {
  /** How long to wait for the end of the run. Default: without a limit. */
  readonly timeout?: Duration | undefined;
}

export interface Pawl extends Pick<Reports, "series" | "failures" | "waiting" | "keys" | "workers"> {
  /**
   * Starts a run of a definition, given as the definition or its name. Resolves when it is
   * committed.
   */
  readonly start: Sender["start"];
  /** Starts up to 10,000 runs in one statement, all or none. The answers have the same order. */
  readonly startMany: Sender["startMany"];
  /**
   * Sends a signal to the inbox of a run and wakes the run if it awaits that signal. Resolves when
   * it is committed. With a `dedupKey`, sending it again does nothing (`delivered` is false).
   * Throws `RunNotFound`, `RunEnded` or `InboxFull`.
   *
   * With `{ correlationKey, name? }` instead of a run id, it sends the signal to all live runs that
   * were started with this key, of one definition if `name` is given. Answers which runs got it. At
   * most 1,000 runs.
   */
  readonly signal: Sender["signal"];
  readonly runs: RunPauses & {
    /** The run with this id. Throws `RunNotFound`. */
    get(runId: string): Promise<Run>;
    /**
     * The runs of a key: an idempotency key, a unique key that is held now, or a correlation key.
     * Live runs come first, then the newest. At most 100: `runs.list({ correlationKey })` has pages.
     */
    find(options: FindOptions): Promise<Run[]>;
    /** A page of runs, newest first. */
    list(options?: ListOptions): Promise<Page>;
    /** How many runs match the filters. It reads all of them, so do not call it in a loop. */
    count(options?: CountOptions): Promise<number>;
    /**
     * The steps of a workflow run: recorded ones in the order of the body, then pending ones.
     * Throws `RunNotFound`.
     */
    steps(runId: string): Promise<Step[]>;
    /**
     * Cancels a run at once; with `cascade` also its children, and their children. A running step
     * sees `ctx.signal` aborted. Answers how many runs it cancelled: 0 if the run was cancelled
     * before. Throws `RunNotFound` or `RunEnded`.
     */
    cancel(runId: string, options?: CancelOptions): Promise<Cancelled>;
    /**
     * Runs an ended run again, as a new run that begins where the old one failed: a workflow keeps
     * its recorded steps, a machine its state. Throws `RunActive` if the run has not ended, and
     * `RunNotFound`.
     */
    rerun<Definition extends AnyDefinition>(
      runId: RunId<Definition>,
      options?: RerunOptions,
    ): Promise<Rerun<Definition>>;
    /**
     * Cancels, reruns, pauses, resumes, signals or deletes all runs that match `where`. Counts them
     * and stores the operation; workers and servers work it off in batches. Follow it with
     * `pawl.bulk`. With `dryRun` it only counts the runs and shows the first ten.
     */
    bulk: {
      (options: BulkOptions<CountOptions> & { readonly dryRun: true }): Promise<BulkPreview>;
      (options: BulkOptions<CountOptions> & { readonly dryRun?: false }): Promise<BulkOperation>;
      (
        options: BulkOptions<CountOptions> & { readonly dryRun?: boolean | undefined },
      ): Promise<BulkOperation | BulkPreview>;
    };
  };
  /** Bulk operations: progress, results, stop. */
  readonly bulk: Bulk;
  /** The action log: who has done what, and when. */
  readonly actions: Actions;
  readonly limits: {
    /** Sets a rate limit for all workers. The last writer wins. */
    set(name: string, limit: LimitOptions): Promise<void>;
    /** All rate limits, ordered by name. */
    list(): Promise<Limit[]>;
    /** A page of the keys of a concurrency limit: who holds its slots, how many runs wait. */
    slots: Reports["slots"];
  };
  /** Message queues, and pauses of queues. */
  readonly queues: Queues & QueuePauses;
  /** The registered definitions, and their pauses. */
  readonly definitions: Definitions & {
    /** A page of the registered definitions, with what their code declares. */
    list: Reports["definitions"];
  };
  /** Start runs by cron or at an interval. */
  readonly schedules: Schedules;
  /** Publish to subscribers. */
  readonly topics: Topics;
  /** Subscribe workflows, queues and URLs to topics. */
  readonly subscriptions: Subscriptions;
  /**
   * The same `start`, `startMany` and `signal`, inside your own transaction: a client of pg, or the
   * object that a transaction of postgres.js, Kysely, Drizzle, Knex or Prisma passes to its
   * function. They take effect when you commit, and a rollback undoes them. A database error aborts
   * the transaction, as it does for your own statements.
   */
  within(tx: OpenTransaction): Within;
  /**
   * Checks whether the open runs of these definitions can continue with this code, and returns
   * those that cannot, with the reason. It calls no step function, but it does run the code of
   * workflows between their steps. Writes nothing.
   */
  check(definitions: readonly AnyDefinition[]): Promise<Checked>;
  /** Why a run makes no progress, as data and as a sentence (`text`). Throws `RunNotFound`. */
  why(runId: string): Promise<Why>;
  /**
   * Waits for the end of a run and returns its output. Throws `RunFailed`, `RunCancelled`,
   * `ResultTimeout` or `RunNotFound`.
   */
  result<Id extends RunId>(runId: Id, options?: ResultOptions): Promise<OutputOf<DefinitionOfRun<Id>>>;
  /** Closes the connections. Calls that still wait for a result fail with `Unavailable`. */
  close(): Promise<void>;
}
