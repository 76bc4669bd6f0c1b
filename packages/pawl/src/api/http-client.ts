/**
 * The client that reaches its runs through a server: the same interface as the one straight to Postgres, by calls of the REST API. What
 * it is given is checked here by the same code, before anything is sent. Works wherever there is `fetch`. Made by `connect`.
 */

import { checkCancel } from "./cancel.js";
import { type Checked, checkRuns, type CheckSource, type OpenRun } from "./check.js";
import type { AnyDefinition, DefinitionOfRun, OutputOf, RunId } from "../define/definition.js";
import { NotSupported, PawlError, Unavailable } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import { Batcher } from "../timing/batch.js";
import { checkLimit } from "../local/limits.js";
import { type Hub, hubOf } from "../local/hub.js";
import { checkDefinitions } from "../worker/options.js";
import type { Cancelled, CancelOptions, Pawl, ResultOptions } from "./pawl.js";
import { queuesOver } from "./queues.js";
import { checkTimeout, toOutput } from "./result.js";
import { type CountOptions, type ListOptions, type Run, toCountFilter, toFilter } from "./runs.js";
import { checkRunId, Sender } from "./send.js";
import type { Step } from "./steps.js";
import type { ServerAddress } from "../store/http/address.js";
import { Caller } from "../store/http/caller.js";
import { HttpClientStore } from "../store/http/http-client-store.js";
import { httpQueues, httpTopics } from "../store/http/http-queues.js";
import { HttpResults } from "../store/http/http-results.js";
import { Lanes } from "../timing/slow-lanes.js";
import type { StoredStep } from "../store/journal.js";
import { isUnreachable } from "../store/refused.js";
import type { NewRun, NewSignal, SignalVerdict, StartedRun } from "../store/store.js";
import { subscriptionsOver, topicsOver } from "./topics.js";
import type { Why } from "./why.js";
import type { Within } from "./within.js";

/** How many starts with a key are under way at once, each by a call of its own. */
const keyedLanes = 32;

export interface HttpClientSettings extends ServerAddress {
  readonly maxPayloadBytes: number;
  readonly logger: Logger;
  /** Makes runs part of the caller's trace, where there is a library for that. */
  readonly trace?: <Answer>(
    runs: readonly NewRun[],
    send: (runs: readonly NewRun[]) => Promise<Answer>,
  ) => Promise<Answer>;
}

export class HttpClient implements Pawl {
  readonly start: Pawl["start"];
  readonly startMany: Pawl["startMany"];
  readonly signal: Pawl["signal"];
  readonly runs: Pawl["runs"];
  readonly limits: Pawl["limits"];
  readonly queues: Pawl["queues"];
  readonly topics: Pawl["topics"];
  readonly subscriptions: Pawl["subscriptions"];
  readonly #store: HttpClientStore;
  readonly #results: HttpResults;
  readonly #starts: Batcher<NewRun, StartedRun | PawlError>;
  readonly #keyed = new Lanes(keyedLanes);
  readonly #hub: Hub;
  #isClosed = false;

  constructor(settings: HttpClientSettings) {
    const caller = new Caller(settings);
    this.#store = new HttpClientStore(caller);
    this.#hub = hubOf(settings.url);
    this.#results = new HttpResults(this.#store, this.#hub, settings.logger);
    this.#starts = new Batcher({
      send: (runs) => this.#store.startEach(runs),
      sizeOf: (run) => run.input.length,
      isOutage: isUnreachable,
      isBusy: () => false,
    });
    const trace: NonNullable<HttpClientSettings["trace"]> = settings.trace ?? ((runs, send) => send(runs));
    const sender = new Sender(
      {
        start: (run) => trace([run], ([traced]) => this.#start(traced!)),
        startMany: (runs) => trace(runs, async (traced) => this.#opened().startAll(traced)),
        signal: (signal) => this.#signal(signal),
      },
      settings,
    );
    this.start = sender.start.bind(sender);
    this.startMany = sender.startMany.bind(sender);
    this.signal = sender.signal.bind(sender);
    this.runs = {
      get: async (runId) => this.#opened().get(checkRunId(runId)),
      list: async (options: ListOptions = {}) => {
        toFilter(options);
        return this.#opened().list(options);
      },
      count: async (options: CountOptions = {}) => {
        toCountFilter(options);
        return this.#opened().count(options);
      },
      steps: async (runId) => this.#opened().steps(checkRunId(runId)),
      cancel: (runId, options) => this.#cancel(runId, options),
    };
    this.limits = {
      set: async (name, limit) => this.#opened().setLimit(checkLimit(name, limit)),
      list: async () => this.#opened().limits(),
    };
    const opened = (): Caller => {
      this.#opened();
      return caller;
    };
    this.queues = queuesOver(httpQueues(opened), settings);
    const topics = httpTopics(opened);
    this.topics = topicsOver(topics, settings);
    this.subscriptions = subscriptionsOver(topics);
  }

  within(): Within {
    throw new NotSupported(
      "pawl.within(tx) writes through a transaction of the database, which a server has no part in; " +
        'use a client straight to Postgres for it: connect("postgres://…")',
    );
  }

  async check(definitions: readonly AnyDefinition[]): Promise<Checked> {
    const checked = checkDefinitions(definitions, "check");
    return checkRuns(openRuns(this.#opened()), checked);
  }

  async why(runId: string): Promise<Why> {
    return this.#opened().why(checkRunId(runId));
  }

  result<Id extends RunId>(runId: Id, options?: ResultOptions): Promise<OutputOf<DefinitionOfRun<Id>>>;
  async result(runId: string, options: ResultOptions = {}): Promise<unknown> {
    const timeoutMs = checkTimeout(options);
    this.#opened();
    const ended = await this.#results.wait(checkRunId(runId), timeoutMs);
    return toOutput(runId, ended, timeoutMs);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#results.close(new Unavailable("this client was closed"));
  }

  #opened(): HttpClientStore {
    if (this.#isClosed) throw new Unavailable("this client was closed");
    return this.#store;
  }

  async #start(run: NewRun): Promise<StartedRun> {
    const store = this.#opened();
    // A key may have to wait for a transaction of somebody: a batch would wait with it.
    if (run.uniqueKey !== null || run.idempotencyKey !== null) {
      return this.#keyed.run(() => store.startOne(run));
    }
    const started = await this.#starts.add(run);
    if (started instanceof PawlError) throw started;
    return started;
  }

  async #signal(signal: NewSignal): Promise<SignalVerdict> {
    const { delivered } = await this.#opened().signal(signal);
    if (delivered) this.#hub.delivered(signal.runId);
    return delivered ? "delivered" : "duplicate";
  }

  async #cancel(runId: string, options: CancelOptions = {}): Promise<Cancelled> {
    const asked = checkCancel(options);
    const answer = await this.#opened().cancel(checkRunId(runId), asked);
    if (answer.cancelled > 0) this.#hub.cancel(runId, asked.reason ?? undefined);
    return answer;
  }
}

/** The open runs of a server, as `check` reads them. */
function openRuns(store: HttpClientStore): CheckSource {
  return {
    async *openRuns(name) {
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page = await store.list({ name, status: "running", limit: 100, cursor });
        for (const run of page.runs) yield toOpenRun(run);
        cursor = page.cursor;
      }
    },
    journal: async (runId) => {
      const steps = (await store.steps(runId)).map(toListed);
      // As a journal is read elsewhere: by name.
      return steps.toSorted((one, other) => (one.name < other.name ? -1 : 1));
    },
  };
}

function toOpenRun({ runId, name, version, step, input, state }: Run): OpenRun {
  return {
    runId,
    name,
    version,
    step,
    input: JSON.stringify(input),
    state: state === null ? null : JSON.stringify(state),
  };
}

/** Steps come in the order of delivery, pending ones last: that is their seq. */
function toListed(step: Step, index: number): StoredStep {
  const { name, kind, status, attempt, childId, dueAt, output, error } = step;
  return {
    name,
    kind,
    seq: status === "pending" ? null : index + 1,
    attempt,
    childId,
    dueMs: null,
    dueAt: dueAt?.toISOString() ?? null,
    output,
    error,
  };
}
