/**
 * `connect`: the client that starts runs, waits for their results and looks at them. Nothing is opened before the
 * first call; every call either answers with what is committed or throws one of the errors of `define/errors.ts`.
 * Idle connections do not keep the process alive.
 */

import type {
  AnyDefinition,
  DefinitionOf,
  DefinitionOfRun,
  InputOf,
  OutputOf,
  RunId,
  SignalArguments,
  SignalNameOf,
  StartTarget,
} from "./define/definition.js";
import { type Duration, toMilliseconds } from "./define/duration.js";
import type { ErrorRecord } from "./define/error-record.js";
import {
  InboxFull,
  InvalidInput,
  InvalidOption,
  KeyConflict,
  ResultTimeout,
  RunCancelled,
  RunEnded,
  RunFailed,
  RunNotFound,
  Unavailable,
} from "./define/errors.js";
import { fromJson, toJson } from "./define/json.js";
import type { Logger } from "./define/logger.js";
import { checkSignalName } from "./define/names.js";
import { checkInteger, checkOptions, checkString } from "./define/options.js";
import { type Status, statusOf } from "./define/phase.js";
import { show } from "./define/show.js";
import type { StartArguments, StartOptions } from "./define/start-options.js";
import { checkLimit, type LimitOptions, setLimit } from "./engine/limits.js";
import { newRun } from "./engine/new-run.js";
import { type Hub, hubOf } from "./engine/nudge.js";
import { checkLogger, checkMaxPayload, checkSchemaName } from "./engine/serve-options.js";
import { Signaller } from "./engine/signal.js";
import { Starter } from "./engine/start.js";
import { givenUrl, locateSchema } from "./locate.js";
import { Results } from "./results.js";
import { isRunId, type ListOptions, type Page, type Run, toFilter, toRun, writeCursor } from "./run.js";
import { addressKey } from "./store/postgres/database.js";
import { isBusy, isOutage } from "./store/postgres/database-errors.js";
import { PostgresStore } from "./store/postgres/postgres-store.js";
import type { StartedRun } from "./store/store.js";
import { explainRun, type Why } from "./why.js";

export interface ConnectOptions {
  /** The schema of Pawl in the database. Default "pawl". */
  readonly schema?: string | undefined;
  /** How many connections the client may open. Default 10. */
  readonly pool?: number | undefined;
  /** How long an input may be as JSON. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

export interface Started<Definition extends AnyDefinition = AnyDefinition> {
  readonly runId: RunId<Definition>;
  /** False if a key was taken: the run is the one that holds it. */
  readonly created: boolean;
  readonly status: Status;
}

export interface Signalled {
  /** False if the run had a signal with this dedup key before. */
  readonly delivered: boolean;
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

/** What `startMany` takes per run: its input and the options of `start`. */
export interface StartItem<Input> extends StartOptions {
  readonly input: Input;
}

/** The most runs that one call of `startMany` starts. */
const maxStarts = 10_000;

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
  readonly runs: {
    /** The run with this id. Throws `RunNotFound`. */
    get(runId: string): Promise<Run>;
    /** A page of runs, newest first. */
    list(options?: ListOptions): Promise<Page>;
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
    this.runs = {
      get: (runId) => this.#get(runId),
      list: (options) => this.#list(options),
      cancel: (runId, options) => this.#cancel(runId, options),
    };
    this.limits = {
      set: (name, limit) => this.#setLimit(name, limit),
      list: async () => (await this.#opened()).store.limits(),
    };
  }

  /** Starts a run of a definition, or of one known by name only. Resolves when it is committed. */
  async start<Target extends StartTarget>(
    target: Target,
    ...[input, options = {}]: StartArguments<InputOf<DefinitionOf<Target>>>
  ): Promise<Started<DefinitionOf<Target>>> {
    const run = await newRun(target, input, options, { maxBytes: this.#settings.maxPayloadBytes });
    const { starter } = await this.#opened();
    return toStarted(await starter.start(run));
  }

  /** Starts up to 10,000 runs in one statement and answers in the same order. Conflicting keys start none of them. */
  async startMany<Target extends StartTarget>(
    target: Target,
    items: readonly StartItem<InputOf<DefinitionOf<Target>>>[],
  ): Promise<Started<DefinitionOf<Target>>[]> {
    if (!Array.isArray(items) || items.length > maxStarts) {
      throw new InvalidOption(
        `startMany takes a list of at most ${maxStarts} items such as { input, uniqueKey }, not ` +
          (Array.isArray(items) ? `${items.length} items` : show(items)),
      );
    }
    const { maxPayloadBytes } = this.#settings;
    const runs = await Promise.all(items.map((item, index) => itemRun(target, item, index, maxPayloadBytes)));
    const { starter } = await this.#opened();
    return runs.length === 0 ? [] : (await starter.startMany(runs)).map((started) => toStarted(started));
  }

  /**
   * Sends a signal: it is in the run's inbox for good when this resolves, and wakes the run if it awaits it. With a `dedupKey`
   * a second delivery is a no-op (`delivered` is false). Throws `RunNotFound`, `RunEnded` or `InboxFull`.
   */
  signal<Id extends RunId, Name extends SignalNameOf<DefinitionOfRun<Id>>>(
    runId: Id,
    name: Name,
    ...rest: SignalArguments<DefinitionOfRun<Id>, Name>
  ): Promise<Signalled>;
  async signal(
    runId: string,
    name: string,
    payload: unknown = {},
    options: unknown = {},
  ): Promise<Signalled> {
    const { dedupKey } = checkOptions(options, ["dedupKey"], "the options of signal");
    const id = checkRunId(runId);
    if (payload === null) {
      throw new InvalidInput(
        `the payload of signal ${show(name)} is null; leave it out, or give an object or a value`,
      );
    }
    const signal = {
      runId: id,
      name: checkSignalName(name),
      payload: toJson(payload, "payload", this.#settings.maxPayloadBytes).text,
      dedupKey: dedupKey === undefined ? null : checkString(dedupKey, "dedupKey", { maxBytes: 512 }),
    };
    const { signaller } = await this.#opened();
    switch (await signaller.send(signal)) {
      case "delivered":
        return { delivered: true };
      case "duplicate":
        return { delivered: false };
      case "not_found":
        throw notFound(runId);
      case "ended":
        throw new RunEnded(`run ${runId} has ended: it takes no more signals`);
      case "full":
        throw new InboxFull(
          `10,000 signals wait in the inbox of run ${runId}: it takes no more until it consumes some`,
        );
    }
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

function toStarted<Definition extends AnyDefinition>({
  runId,
  created,
  phase,
  conflict,
}: StartedRun): Started<Definition> {
  if (conflict !== null) {
    throw new KeyConflict(`the unique key is held by run ${runId}, the idempotency key by run ${conflict}`);
  }
  return { runId, created, status: statusOf(phase) };
}

async function itemRun(
  target: AnyDefinition | string,
  item: StartItem<unknown>,
  index: number,
  maxBytes: number,
): ReturnType<typeof newRun> {
  if (typeof item !== "object" || item === null || !("input" in item)) {
    throw new InvalidOption(
      `item ${index} of startMany must be an object such as { input: … }, not ${show(item)}`,
    );
  }
  const { input, ...options } = item;
  return newRun(target, input, options, { what: `items[${index}].input`, maxBytes });
}

function checkRunId(runId: unknown): string {
  if (isRunId(runId)) return runId;
  if (typeof runId === "string") throw notFound(runId);
  throw new InvalidOption(`a run id is a string, not ${show(runId)}`);
}

function notFound(runId: string): RunNotFound {
  return new RunNotFound(`there is no run ${show(runId, 60)}`);
}
