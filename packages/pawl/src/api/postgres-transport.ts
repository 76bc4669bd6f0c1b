/**
 * The client's transport straight to Postgres. Calls that happen together share one statement. The
 * hub (`local/hub.ts`) connects this client with the workers of its process: they get new and woken
 * runs without a poll, and announce the end of runs. Idle connections do not keep the process
 * alive. Opened by the client at its first call.
 */

import { type Hub, hubOf } from "../local/hub.js";
import { setLimit } from "../local/limits.js";
import { Messages } from "../local/messages.js";
import { pausesOver } from "../local/pauses.js";
import { Receiver } from "../local/receiver.js";
import { Results } from "../local/results.js";
import { Signaller } from "../local/signal.js";
import { Starter } from "../local/start.js";
import type {
  ActionFilter,
  CorrelatedSignal,
  EndedRun,
  FindQuery,
  NewSignal,
  RerunRequest,
  RerunVerdict,
  SignalVerdict,
  StoredAction,
  StoredBulk,
} from "../store/client-store.js";
import type {
  BulkTransport,
  ClientTransport,
  QueueTransport,
  RunPageQuery,
  RunQuery,
  ScheduleTransport,
  TopicTransport,
} from "../store/client-transport.js";
import { currentActor } from "../operate/actor.js";
import { LocalSchedules } from "../schedules/local-schedules.js";
import type { DatabaseSource } from "../store/driver/source-types.js";
import { addressKey } from "../store/postgres/database.js";
import { isBusy, isOutage } from "../store/postgres/database-errors.js";
import { PostgresStore } from "../store/postgres/postgres-store.js";
import type { PauseTransport } from "../store/pauses.js";
import type { ReportTransport } from "../store/reports/reports.js";
import type { StoredSubscription } from "../store/queue-store.js";
import type { NewRun, StartedRun, StoredLimit } from "../store/runs.js";
import { LockLanes } from "../timing/slow-lanes.js";
import { fromJson } from "../values/json.js";
import type { Logger } from "../values/logger.js";
import { type Located, locateSchema } from "./locate.js";
import { type Page, type Run, toFilter, toRun, whereOf, writeCursor } from "./runs.js";
import { type StepPage, stepsPage } from "./steps.js";
import { explainRun, type Why } from "./why.js";

/** How many runs `runs.find` answers. */
const maxFound = 100;
/** How many subscriptions one call reads. */
const subscriptionPage = 1_000;

export interface PostgresSettings {
  /** undefined: a local Postgres. */
  readonly url: DatabaseSource | undefined;
  readonly schema: string;
  readonly poolSize: number;
  readonly logger: Logger;
}

export async function openPostgresTransport(settings: PostgresSettings): Promise<ClientTransport> {
  const database = await locateSchema(settings.url, settings.schema);
  return new PostgresTransport(database, settings);
}

class PostgresTransport implements ClientTransport {
  readonly queues: QueueTransport;
  readonly topics: TopicTransport;
  readonly bulk: BulkTransport;
  readonly pauses: PauseTransport;
  readonly schedules: ScheduleTransport;
  readonly reports: ReportTransport;
  readonly #database: Located<DatabaseSource>;
  readonly #store: PostgresStore;
  readonly #hub: Hub;
  readonly #lanes: LockLanes;
  readonly #starter: Starter;
  readonly #signaller: Signaller;
  readonly #receiver: Receiver;
  readonly #results: Results;

  constructor(database: Located<DatabaseSource>, { schema, poolSize, logger }: PostgresSettings) {
    const address = { url: database.url, schema };
    const store = new PostgresStore(address, { connections: poolSize });
    const hub = hubOf(addressKey(address));
    const lanes = new LockLanes({ isBusy, connections: poolSize });
    this.#database = database;
    this.#store = store;
    this.#hub = hub;
    this.#lanes = lanes;
    this.#starter = new Starter(store, hub, { isOutage, isBusy, lanes });
    this.#signaller = new Signaller(store, hub, { isOutage, isBusy });
    this.#receiver = new Receiver(store, hub, logger);
    this.#results = new Results(store, hub, logger);
    this.queues = this.#queues(new Messages(store, hub, { isOutage, isBusy, lanes }));
    this.topics = this.#topics();
    this.bulk = this.#bulk();
    this.reports = store.reports();
    this.schedules = new LocalSchedules(store, hub, currentActor);
    this.pauses = pausesOver(store.pausing, hub, currentActor);
  }

  start(run: NewRun): Promise<StartedRun> {
    return this.#starter.start(run);
  }

  startMany(runs: readonly NewRun[]): Promise<StartedRun[]> {
    return this.#starter.startMany(runs);
  }

  signal(signal: NewSignal): Promise<SignalVerdict> {
    return this.#signaller.send(signal);
  }

  signalCorrelated(signal: CorrelatedSignal): ReturnType<ClientTransport["signalCorrelated"]> {
    return this.#lanes.run(() => this.#signaller.sendCorrelated(signal));
  }

  async cancel(
    runId: string,
    options: { reason: string | null; cascade: boolean },
  ): ReturnType<ClientTransport["cancel"]> {
    const hub = this.#hub;
    const by = currentActor();
    const answer = await this.#lanes.run(() => this.#store.cancel(runId, { ...options, by }));
    for (const [index, ended] of answer.runIds.entries()) {
      hub.cancel(ended, options.reason ?? undefined);
      const name = answer.names[index]!;
      hub.emit("run.completed", { runId: ended, name, status: "cancelled", code: null, durationMs: null });
    }
    for (const lost of answer.lost) hub.emit("run.unique_lost", lost);
    hub.claimable(answer.claimable);
    return { verdict: answer.verdict, phase: answer.phase, cancelled: answer.runIds.length };
  }

  async rerun(runId: string, request: RerunRequest): Promise<RerunVerdict> {
    const rerun = await this.#store.rerun(runId, request, currentActor());
    if (rerun.kind === "rerun" && rerun.created) {
      const { name, version } = rerun;
      this.#hub.hint(rerun.queue);
      this.#hub.emit("run.started", { runId: rerun.runId, name, version, parentId: null });
    }
    return rerun;
  }

  async get(runId: string): Promise<Run | null> {
    const [run] = await this.#store.get([runId]);
    return run === undefined ? null : toRun(run);
  }

  async find(query: FindQuery): Promise<Run[]> {
    return (await this.#store.find(query, maxFound)).map(toRun);
  }

  async list(query: RunPageQuery): Promise<Page> {
    const { runs, last } = await this.#store.list(toFilter(query));
    return { runs: runs.map(toRun), cursor: last === null ? null : writeCursor(last) };
  }

  count(query: RunQuery): Promise<number> {
    return this.#store.count(toFilter({ ...query, cursor: null, limit: 1 }));
  }

  steps(runId: string, cursor: string | undefined): Promise<StepPage> {
    return stepsPage(this.#store, runId, cursor);
  }

  async why(runId: string): Promise<Why | null> {
    const facts = await this.#store.why(runId);
    return facts === null ? null : explainRun(runId, facts);
  }

  result(runId: string, timeoutMs: number | null): Promise<EndedRun | null> {
    return this.#results.wait(runId, timeoutMs);
  }

  actions(filter: ActionFilter): Promise<StoredAction[]> {
    return this.#store.actions(filter);
  }

  limits(): Promise<StoredLimit[]> {
    return this.#store.limits();
  }

  async setLimit(limit: StoredLimit): Promise<void> {
    const by = currentActor();
    await setLimit(
      {
        setLimit: (changed) => this.#lanes.run(() => this.#store.setLimit(changed, by)),
        bringForward: (most) => this.#store.bringForward(most),
      },
      limit,
    );
    this.#hub.hint(null);
  }

  async close(reason: Error): Promise<void> {
    this.#results.close(reason);
    await this.#receiver.close(reason);
    await this.#store.close();
    await this.#database.close();
  }

  #queues(messages: Messages): QueueTransport {
    return {
      send: (sent) => messages.send(sent),
      receive: async (filter, options) => {
        const received = await this.#receiver.receive(filter, options);
        return received.map((message) => ({ ...message, body: fromJson(message.body) }));
      },
      ack: (receipts) => messages.ack(receipts),
      extend: (receipts, visibilityMs) => messages.extend(receipts, visibilityMs),
      stats: (queue) => this.#store.queueStats(queue),
    };
  }

  #bulk(): BulkTransport {
    const store = this.#store;
    const read = async (id: string): Promise<StoredBulk | null> => {
      const [found] = await store.bulk({ id, before: null, limit: 1 });
      return found ?? null;
    };
    return {
      start: async ({ query, action, settings }) => {
        const by = currentActor();
        const filter = toFilter({ ...query, cursor: null, limit: 1 });
        const counted = await store.count(filter);
        const id = await store.startBulk({ action, where: whereOf(query), filter, settings, counted }, by);
        return (await read(id))!;
      },
      get: read,
      list: (page) => store.bulk({ id: null, ...page }),
      results: (id, page) => store.bulkResults(id, page),
      stop: (id) => store.stopBulk(id, currentActor()),
    };
  }

  #topics(): TopicTransport {
    const [store, hub, lanes] = [this.#store, this.#hub, this.#lanes];
    return {
      async publish(topic, body, dedupKey) {
        const { queues, ...published } = await lanes.run(() => store.publish(topic, body, dedupKey));
        for (const queue of new Set(queues)) hub.visible(queue, { isOld: false });
        if (published.created && published.runs + published.deliveries > 0) hub.hint(null);
        return published;
      },
      subscribe: (pattern, target, secret) => lanes.run(() => store.subscribe(pattern, target, secret)),
      unsubscribe: (id) => lanes.run(() => store.unsubscribe(id, null)),
      async subscriptions(pattern) {
        const all: StoredSubscription[] = [];
        for (let found = subscriptionPage; found === subscriptionPage;) {
          const after = all.at(-1)?.id ?? "0";
          const next = await store.subscriptions({ pattern, after, limit: subscriptionPage });
          all.push(...next);
          found = next.length;
        }
        return all;
      },
    };
  }
}
