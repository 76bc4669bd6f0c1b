/**
 * The client: the one implementation of `Pawl`. It checks options and encodes values before it
 * sends anything, and turns answers into results and errors. Its transport carries the calls:
 * straight to Postgres or through a server. The client opens the transport at the first call.
 * Imports neither the driver nor Node, so it also works in browsers. Made by `connect`.
 */

import type { AnyDefinition, DefinitionOfRun, OutputOf, RunId } from "../define/definition.js";
import { checkLimit } from "../local/limits.js";
import { actionsOver } from "../operate/actions.js";
import { bulkOver, checkBulk, startBulk } from "../operate/bulk.js";
import { reportsOver } from "../operate/reports.js";
import { checkRerun, type RerunOptions, toRerun } from "../operate/rerun.js";
import type { ClientTransport, RunQuery } from "../store/client-transport.js";
import type { PauseTransport } from "../store/pauses.js";
import type { OpenTransaction } from "../store/postgres/callers.js";
import { NotSupported, Unavailable } from "../values/errors.js";
import { checkDefinitions } from "../worker/options.js";
import { type Checked, checkRuns } from "./check.js";
import {
  checkCancel,
  definitionsOver,
  queuePausesOver,
  runPausesOver,
  toCancelled,
} from "./cancel-and-pause.js";
import type { Cancelled, CancelOptions, Pawl, ResultOptions } from "./pawl.js";
import { queuesOver } from "./queues.js";
import { checkTimeout, toOutput } from "./result.js";
import { checkRunId, notFound } from "../values/run-id.js";
import { type Run, toCountQuery, toFindQuery, toPageQuery } from "./runs.js";
import { schedulesOver } from "../schedules/schedules.js";
import { Sender } from "./send.js";
import { listSteps, type Step } from "./steps.js";
import { subscriptionsOver, topicsOver } from "./topics.js";
import type { Why } from "./why.js";
import type { Within } from "./within.js";

export interface ClientSettings {
  readonly maxPayloadBytes: number;
  /** Opens the way to the runs. Called at the first call, and again if that failed. */
  open(): Promise<ClientTransport>;
  /** `pawl.within`. Only a client straight to Postgres has it. */
  readonly within?: (tx: OpenTransaction) => Within;
}

export class Client implements Pawl {
  readonly start: Pawl["start"];
  readonly startMany: Pawl["startMany"];
  readonly signal: Pawl["signal"];
  readonly runs: Pawl["runs"];
  readonly limits: Pawl["limits"];
  readonly bulk: Pawl["bulk"];
  readonly actions: Pawl["actions"];
  readonly schedules: Pawl["schedules"];
  readonly queues: Pawl["queues"];
  readonly topics: Pawl["topics"];
  readonly subscriptions: Pawl["subscriptions"];
  readonly definitions: Pawl["definitions"];
  readonly series: Pawl["series"];
  readonly failures: Pawl["failures"];
  readonly waiting: Pawl["waiting"];
  readonly keys: Pawl["keys"];
  readonly workers: Pawl["workers"];
  readonly #settings: ClientSettings;
  #opening: Promise<ClientTransport> | undefined;
  #isClosed = false;

  constructor(settings: ClientSettings) {
    this.#settings = settings;
    const transport = (): Promise<ClientTransport> => this.#transport();
    const sender = new Sender(transport, settings);
    this.start = sender.start.bind(sender);
    this.startMany = sender.startMany.bind(sender);
    this.signal = sender.signal.bind(sender);
    const pauses = async (): Promise<PauseTransport> => (await transport()).pauses;
    this.runs = {
      get: (runId) => this.#get(runId),
      find: async (options) => {
        const query = toFindQuery(options);
        return (await transport()).find(query);
      },
      list: async (options = {}) => {
        const query = toPageQuery(options);
        return (await transport()).list(query);
      },
      count: async (options = {}) => {
        const query = toCountQuery(options);
        return (await transport()).count(query);
      },
      steps: (runId) => this.#steps(runId),
      cancel: (runId, options) => this.#cancel(runId, options),
      bulk: (async (options: unknown) => {
        const where = (given: unknown): RunQuery => toCountQuery(given, "where of runs.bulk");
        const checked = checkBulk(options, settings.maxPayloadBytes, where);
        return startBulk(await transport(), checked);
      }) as Pawl["runs"]["bulk"],
      rerun: (runId: string, options: RerunOptions = {}) => this.#rerun(runId, options),
      ...runPausesOver(pauses),
    };
    const reports = reportsOver(async () => (await transport()).reports);
    this.limits = {
      set: async (name, limit) => {
        const checked = checkLimit(name, limit);
        return (await transport()).setLimit(checked);
      },
      list: async () => (await transport()).limits(),
      slots: (name, options) => reports.slots(name, options),
    };
    this.bulk = bulkOver(transport);
    this.actions = actionsOver(transport);
    this.queues = {
      ...queuesOver(async () => (await transport()).queues, settings),
      ...queuePausesOver(pauses),
    };
    this.definitions = { ...definitionsOver(pauses), list: (options) => reports.definitions(options) };
    this.series = (options) => reports.series(options);
    this.failures = (options) => reports.failures(options);
    this.waiting = (options) => reports.waiting(options);
    this.keys = (options) => reports.keys(options);
    this.workers = (options) => reports.workers(options);
    this.schedules = schedulesOver(async () => (await transport()).schedules, settings);
    this.topics = topicsOver(async () => (await transport()).topics, settings);
    this.subscriptions = subscriptionsOver(async () => (await transport()).topics);
  }

  within(tx: OpenTransaction): Within {
    const { within } = this.#settings;
    if (within === undefined) {
      throw new NotSupported(
        "pawl.within(tx) writes in your own database transaction, and a server takes no part in it; " +
          'use a client straight to Postgres instead: connect("postgres://…")',
      );
    }
    if (this.#isClosed) throw closed();
    return within(tx);
  }

  async check(definitions: readonly AnyDefinition[]): Promise<Checked> {
    const checked = checkDefinitions(definitions, "check");
    return checkRuns(await this.#transport(), checked);
  }

  async why(runId: string): Promise<Why> {
    const id = checkRunId(runId);
    const why = await (await this.#transport()).why(id);
    if (why === null) throw notFound(runId);
    return why;
  }

  result<Id extends RunId>(runId: Id, options?: ResultOptions): Promise<OutputOf<DefinitionOfRun<Id>>>;
  async result(runId: string, options: ResultOptions = {}): Promise<unknown> {
    const timeoutMs = checkTimeout(options);
    const transport = await this.#transport();
    const ended = await transport.result(checkRunId(runId), timeoutMs);
    return toOutput(runId, ended, timeoutMs);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const transport = await this.#opening?.catch(() => undefined);
    await transport?.close(closed());
  }

  async #get(runId: string): Promise<Run> {
    const transport = await this.#transport();
    const run = await transport.get(checkRunId(runId));
    if (run === null) throw notFound(runId);
    return run;
  }

  async #steps(runId: string): Promise<Step[]> {
    const transport = await this.#transport();
    const id = checkRunId(runId);
    const steps = await listSteps((cursor) => transport.steps(id, cursor));
    if (steps.length === 0) await this.#get(runId);
    return steps;
  }

  async #cancel(runId: string, options: CancelOptions = {}): Promise<Cancelled> {
    const checked = checkCancel(options);
    const id = checkRunId(runId);
    const transport = await this.#transport();
    return toCancelled(runId, await transport.cancel(id, checked));
  }

  async #rerun(runId: string, options: RerunOptions): Promise<{ runId: string; created: boolean }> {
    const request = checkRerun(options, this.#settings.maxPayloadBytes);
    const id = checkRunId(runId);
    const transport = await this.#transport();
    return toRerun(runId, request, await transport.rerun(id, request));
  }

  /**
   * Opens the transport at the first call. A failure goes to the caller, and the next call tries
   * again.
   */
  #transport(): Promise<ClientTransport> {
    if (this.#isClosed) return Promise.reject(closed());
    this.#opening ??= this.#settings.open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }
}

function closed(): Unavailable {
  return new Unavailable("this client was closed");
}
