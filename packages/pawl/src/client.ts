/**
 * `connect`: the client that starts runs, waits for their results and looks at them. Nothing is opened before the
 * first call; every call either answers with what is committed or throws one of the errors of `define/errors.ts`.
 * Idle connections do not keep the process alive.
 */

import { type Checked, checkRuns } from "./check.js";
import type { AnyDefinition, DefinitionOfRun, OutputOf, RunId } from "./define/definition.js";
import { type Duration, toMilliseconds } from "./define/duration.js";
import type { ErrorRecord } from "./define/error-record.js";
import {
  InvalidOption,
  ResultTimeout,
  RunCancelled,
  RunEnded,
  RunFailed,
  Unavailable,
} from "./define/errors.js";
import { fromJson } from "./define/json.js";
import type { Logger } from "./define/logger.js";
import { checkInteger, checkOptions, checkString } from "./define/options.js";
import { statusOf } from "./define/phase.js";
import { show } from "./define/show.js";
import { checkLimit, type LimitOptions, setLimit } from "./engine/limits.js";
import { type Hub, hubOf } from "./engine/nudge.js";
import { checkDefinitions, checkLogger, checkMaxPayload, checkSchemaName } from "./engine/serve-options.js";
import { Signaller } from "./engine/signal.js";
import { Starter } from "./engine/start.js";
import { givenUrl, locateSchema } from "./locate.js";
import { Results } from "./results.js";
import { type ListOptions, type Page, type Run, toFilter, toRun, writeCursor } from "./run.js";
import { checkRunId, notFound, Sender } from "./sender.js";
import { listSteps, type Step } from "./steps.js";
import type { OpenTransaction } from "./store/postgres/callers.js";
import { addressKey } from "./store/postgres/database.js";
import { isBusy, isOutage } from "./store/postgres/database-errors.js";
import { PostgresStore } from "./store/postgres/postgres-store.js";
import { explainRun, type Why } from "./why.js";
import { within, type Within } from "./within.js";

export interface ConnectOptions {
  /** The schema of Pawl in the database. Default "pawl". */
  readonly schema?: string | undefined;
  /** How many connections the client may open. Default 10. */
  readonly pool?: number | undefined;
  /** How long an input may be as JSON. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

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

const defaults = { pool: 10 };

/** The client of one database. */
export function connect(url?: string, options: ConnectOptions = {}): Pawl {
  const given = checkOptions(
    options,
    ["schema", "pool", "maxPayloadBytes", "logger"],
    "the options of connect",
  );
  return new Pawl({
    url: givenUrl(url),
    schema: checkSchemaName(given.schema),
    poolSize: checkInteger(given.pool ?? defaults.pool, "pool", { min: 1, max: 1_000 }),
    maxPayloadBytes: checkMaxPayload(given.maxPayloadBytes),
    logger: checkLogger(given.logger),
  });
}

interface ConnectSettings {
  readonly url: string | undefined;
  readonly schema: string;
  readonly poolSize: number;
  readonly maxPayloadBytes: number;
  readonly logger: Logger;
}

interface Opened {
  readonly store: PostgresStore;
  readonly hub: Hub;
  readonly starter: Starter;
  readonly signaller: Signaller;
  readonly results: Results;
  close(): Promise<void>;
}

export class Pawl {
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
  readonly #settings: ConnectSettings;
  #opening: Promise<Opened> | undefined;
  #isClosed = false;

  constructor(settings: ConnectSettings) {
    this.#settings = settings;
    const sender = new Sender(
      {
        start: async (run) => (await this.#opened()).starter.start(run),
        startMany: async (runs) => (await this.#opened()).starter.startMany(runs),
        signal: async (signal) => (await this.#opened()).signaller.send(signal),
      },
      settings,
    );
    this.start = sender.start.bind(sender);
    this.startMany = sender.startMany.bind(sender);
    this.signal = sender.signal.bind(sender);
    this.runs = {
      get: (runId) => this.#get(runId),
      list: (options) => this.#list(options),
      steps: (runId) => this.#steps(runId),
      cancel: (runId, options) => this.#cancel(runId, options),
    };
    this.limits = {
      set: (name, limit) => this.#setLimit(name, limit),
      list: async () => (await this.#opened()).store.limits(),
    };
  }

  /**
   * The same `start`, `startMany` and `signal`, written by an open transaction of yours: a client of pg, or what a transaction of
   * postgres.js, Kysely, Drizzle, Knex or Prisma passes to its function. It counts when you commit; after a rollback it
   * never was. An error of the database aborts the transaction, as it does for your own statements.
   */
  within(tx: OpenTransaction): Within {
    if (this.#isClosed) throw new Unavailable("this client was closed");
    const { url, schema, maxPayloadBytes } = this.#settings;
    const hub = (): Hub | undefined => (url === undefined ? undefined : hubOf(addressKey({ url, schema })));
    return within(tx, { schema, maxPayloadBytes, hub });
  }

  /**
   * Would the open runs of these definitions go on with this code? Gives those that would not, and why. Calls no function of any
   * step; the code of workflows between their steps does run. Writes nothing.
   */
  async check(definitions: readonly AnyDefinition[]): Promise<Checked> {
    const checked = checkDefinitions(definitions, "check");
    const { store } = await this.#opened();
    return checkRuns(store, checked);
  }

  /** Why a run is not making progress, as data and in a sentence (`text`). Throws `RunNotFound`. */
  async why(runId: string): Promise<Why> {
    const { store } = await this.#opened();
    const facts = await store.why(checkRunId(runId));
    if (facts === null) throw notFound(runId);
    return explainRun(runId, facts);
  }

  /** The output of a run, once it is done. Throws `RunFailed`, `RunCancelled`, `ResultTimeout` or `RunNotFound`. */
  result<Id extends RunId>(
    runId: Id,
    options?: { readonly timeout?: Duration | undefined },
  ): Promise<OutputOf<DefinitionOfRun<Id>>>;
  async result(runId: string, options: { readonly timeout?: Duration | undefined } = {}): Promise<unknown> {
    const { timeout } = checkOptions(options, ["timeout"], "the options of result");
    const timeoutMs = timeout === undefined ? null : toMilliseconds(timeout, "timeout");
    const { results } = await this.#opened();
    const ended = await results.wait(checkRunId(runId), timeoutMs);
    if (ended === null) {
      throw new ResultTimeout(`run ${runId} has not ended within ${timeoutMs} ms; it goes on`);
    }
    const error = ended.error === null ? null : (fromJson(ended.error) as unknown as ErrorRecord);
    switch (ended.phase) {
      case "done":
        return fromJson(ended.result ?? "null");
      case "failed":
        throw new RunFailed(runId, error ?? { name: "Error", message: "no error was recorded" });
      case "cancelled":
        throw new RunCancelled(runId, error?.message);
      case null:
        throw notFound(runId);
    }
  }

  /** Ends the connections. Whoever still waits for a result gets `Unavailable`. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.close();
  }

  async #get(runId: string): Promise<Run> {
    const { store } = await this.#opened();
    const [run] = await store.get([checkRunId(runId)]);
    if (run === undefined) throw notFound(runId);
    return toRun(run);
  }

  async #steps(runId: string): Promise<Step[]> {
    const { store } = await this.#opened();
    const steps = await listSteps(store, checkRunId(runId));
    if (steps.length === 0) await this.#get(runId);
    return steps;
  }

  async #cancel(runId: string, options: CancelOptions = {}): Promise<Cancelled> {
    const given = checkOptions(options, ["reason", "cascade"], "the options of runs.cancel");
    const reason =
      given.reason === undefined ? undefined : checkString(given.reason, "reason", { maxBytes: 8_192 });
    if (given.cascade !== undefined && typeof given.cascade !== "boolean") {
      throw new InvalidOption(`cascade must be true or false, not ${show(given.cascade)}`);
    }
    const { store, hub } = await this.#opened();
    const cascade = given.cascade === true;
    const answer = await store.cancel(checkRunId(runId), { reason: reason ?? null, cascade });
    for (const id of answer.runIds) hub.cancel(id, reason);
    hub.claimable(answer.claimable);
    if (answer.verdict === "not_found") throw notFound(runId);
    if (answer.verdict === "ended") {
      throw new RunEnded(
        `run ${runId} has ended (${statusOf(answer.phase!)}): it cannot be cancelled any more`,
      );
    }
    return { cancelled: answer.runIds.length };
  }

  async #setLimit(name: string, limit: LimitOptions): Promise<void> {
    const checked = checkLimit(name, limit);
    const { store, hub } = await this.#opened();
    await setLimit(store, checked);
    hub.nudge(null);
  }

  async #list(options: ListOptions = {}): Promise<Page> {
    const filter = toFilter(options);
    const { store } = await this.#opened();
    const { runs, last } = await store.list(filter);
    return {
      runs: runs.map(toRun),
      cursor: last !== null && runs.length === filter.limit ? writeCursor(last) : null,
    };
  }

  /** Opens the database at the first call; a failure is the caller's, and the next call tries again. */
  #opened(): Promise<Opened> {
    if (this.#isClosed) return Promise.reject(new Unavailable("this client was closed"));
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<Opened> {
    const { url, schema, poolSize, logger } = this.#settings;
    const database = await locateSchema(url, schema);
    const address = { url: database.url, schema };
    const store = new PostgresStore(address, { connections: poolSize });
    const hub = hubOf(addressKey(address));
    const results = new Results(store, hub, logger);
    return {
      store,
      hub,
      signaller: new Signaller(store, hub, { isOutage, isBusy }),
      starter: new Starter(store, hub, { isOutage, isBusy }),
      results,
      close: async () => {
        results.close(new Unavailable("this client was closed"));
        await store.close();
        await database.close();
      },
    };
  }
}
