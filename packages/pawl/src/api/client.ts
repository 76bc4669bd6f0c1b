/**
 * The client that reaches its runs straight in Postgres. Nothing is opened before the first call. Idle connections do not keep the
 * process alive. Made by `connect`.
 */

import { checkCancel } from "./cancel.js";
import { type Checked, checkRuns, storedRuns } from "./check.js";
import type { AnyDefinition, DefinitionOfRun, OutputOf, RunId } from "../define/definition.js";
import { RunEnded, Unavailable } from "../values/errors.js";
import { fromJson } from "../values/json.js";
import type { Logger } from "../values/logger.js";
import { statusOf } from "../values/phase.js";
import { LockLanes } from "../timing/slow-lanes.js";
import { checkLimit, type LimitOptions, setLimit } from "../local/limits.js";
import { Messages } from "../local/messages.js";
import { type Hub, hubOf } from "../local/hub.js";
import { Receiver } from "../local/receiver.js";
import { checkDefinitions } from "../worker/options.js";
import { Signaller } from "../local/signal.js";
import { Starter } from "../local/start.js";
import { locateSchema } from "./locate.js";
import type { Cancelled, CancelOptions, Pawl, ResultOptions } from "./pawl.js";
import { queuesOver } from "./queues.js";
import { checkTimeout, toOutput } from "./result.js";
import { Results } from "../local/results.js";
import {
  type ListOptions,
  type Page,
  type Run,
  toCountFilter,
  toFilter,
  toRun,
  writeCursor,
} from "./runs.js";
import { checkRunId, notFound, Sender } from "./send.js";
import { listSteps, type Step, stepsPage } from "./steps.js";
import type { OpenTransaction } from "../store/postgres/callers.js";
import { addressKey } from "../store/postgres/database.js";
import { isBusy, isOutage } from "../store/postgres/database-errors.js";
import { PostgresStore } from "../store/postgres/postgres-store.js";
import { postgresTopics } from "./postgres-topics.js";
import { subscriptionsOver, topicsOver } from "./topics.js";
import { explainRun, type Why } from "./why.js";
import { within, type Within } from "./within.js";

export interface ClientSettings {
  readonly url: string | undefined;
  readonly schema: string;
  readonly poolSize: number;
  readonly maxPayloadBytes: number;
  readonly logger: Logger;
}

interface Opened {
  readonly store: PostgresStore;
  readonly hub: Hub;
  readonly lanes: LockLanes;
  readonly starter: Starter;
  readonly signaller: Signaller;
  readonly messages: Messages;
  readonly receiver: Receiver;
  readonly results: Results;
  close(): Promise<void>;
}

export class PostgresClient implements Pawl {
  readonly start: Pawl["start"];
  readonly startMany: Pawl["startMany"];
  readonly signal: Pawl["signal"];
  readonly runs: Pawl["runs"];
  readonly limits: Pawl["limits"];
  readonly queues: Pawl["queues"];
  readonly topics: Pawl["topics"];
  readonly subscriptions: Pawl["subscriptions"];
  readonly #settings: ClientSettings;
  #opening: Promise<Opened> | undefined;
  #isClosed = false;

  constructor(settings: ClientSettings) {
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
      count: async (options = {}) => {
        const filter = toCountFilter(options);
        return (await this.#opened()).store.count(filter);
      },
      steps: (runId) => this.#steps(runId),
      cancel: (runId, options) => this.#cancel(runId, options),
    };
    this.limits = {
      set: (name, limit) => this.#setLimit(name, limit),
      list: async () => (await this.#opened()).store.limits(),
    };
    this.queues = queuesOver(
      {
        send: async (messages) => (await this.#opened()).messages.send(messages),
        receive: async (wanted, options) => {
          const messages = await (await this.#opened()).receiver.receive(wanted, options);
          return messages.map((message) => ({ ...message, body: fromJson(message.body) }));
        },
        ack: async (receipts) => (await this.#opened()).messages.ack(receipts),
        extend: async (receipts, visibilityMs) =>
          (await this.#opened()).messages.extend(receipts, visibilityMs),
        stats: async (queue) => (await this.#opened()).store.queueStats(queue),
      },
      settings,
    );
    const route = postgresTopics(() => this.#opened());
    this.topics = topicsOver(route, settings);
    this.subscriptions = subscriptionsOver(route);
  }

  within(tx: OpenTransaction): Within {
    if (this.#isClosed) throw new Unavailable("this client was closed");
    const { url, schema, maxPayloadBytes } = this.#settings;
    const hub = (): Hub | undefined => (url === undefined ? undefined : hubOf(addressKey({ url, schema })));
    return within(tx, { schema, maxPayloadBytes, hub });
  }

  async check(definitions: readonly AnyDefinition[]): Promise<Checked> {
    const checked = checkDefinitions(definitions, "check");
    const { store } = await this.#opened();
    return checkRuns(storedRuns(store), checked);
  }

  async why(runId: string): Promise<Why> {
    const { store } = await this.#opened();
    const facts = await store.why(checkRunId(runId));
    if (facts === null) throw notFound(runId);
    return explainRun(runId, facts);
  }

  result<Id extends RunId>(runId: Id, options?: ResultOptions): Promise<OutputOf<DefinitionOfRun<Id>>>;
  async result(runId: string, options: ResultOptions = {}): Promise<unknown> {
    const timeoutMs = checkTimeout(options);
    const { results } = await this.#opened();
    const ended = await results.wait(checkRunId(runId), timeoutMs);
    return toOutput(runId, ended, timeoutMs);
  }

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
    const steps = await listSteps((cursor) => stepsPage(store, checkRunId(runId), cursor));
    if (steps.length === 0) await this.#get(runId);
    return steps;
  }

  async #cancel(runId: string, options: CancelOptions = {}): Promise<Cancelled> {
    const { reason, cascade } = checkCancel(options);
    const id = checkRunId(runId);
    const { store, hub, lanes } = await this.#opened();
    const answer = await lanes.run(() => store.cancel(id, { reason, cascade }));
    for (const [index, ended] of answer.runIds.entries()) {
      hub.cancel(ended, reason ?? undefined);
      const name = answer.names[index]!;
      hub.emit("run.completed", { runId: ended, name, status: "cancelled", code: null, durationMs: null });
    }
    for (const lost of answer.lost) hub.emit("run.unique_lost", lost);
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
    const { store, hub, lanes } = await this.#opened();
    await setLimit(
      {
        setLimit: (changed) => lanes.run(() => store.setLimit(changed)),
        bringForward: (most) => store.bringForward(most),
      },
      checked,
    );
    hub.nudge(null);
  }

  async #list(options: ListOptions = {}): Promise<Page> {
    const filter = toFilter(options);
    const { store } = await this.#opened();
    const { runs, last } = await store.list(filter);
    return { runs: runs.map(toRun), cursor: last === null ? null : writeCursor(last) };
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
    const receiver = new Receiver(store, hub, logger);
    const lanes = new LockLanes({ isBusy, connections: poolSize });
    return {
      store,
      hub,
      lanes,
      signaller: new Signaller(store, hub, { isOutage, isBusy }),
      starter: new Starter(store, hub, { isOutage, isBusy, lanes }),
      messages: new Messages(store, hub, { isOutage, isBusy, lanes }),
      receiver,
      results,
      close: async () => {
        results.close(new Unavailable("this client was closed"));
        await receiver.close(new Unavailable("this client was closed"));
        await store.close();
        await database.close();
      },
    };
  }
}
