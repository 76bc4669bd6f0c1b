/**
 * A worker: serves definitions until it is stopped. It registers (its row is the lease of its
 * claims), then sends heartbeats, claims, executes, commits and sweeps. If it loses its lease, it
 * aborts its steps, drops their outcomes and goes on under a new id, so that its old claims expire
 * like those of a dead worker. No outage ends the process. Made by `serve`.
 */

import type { AnyDefinition } from "../define/definition.js";
import type { ConfirmedHeartbeat } from "../heartbeat/lease.js";
import type { LocalWorker, Reservation, Slots } from "../local/hub.js";
import { setLimit } from "../local/limits.js";
import { Events } from "../observe/events.js";
import type { Reading } from "../observe/exposition.js";
import { Observer } from "../observe/observer.js";
import { ScheduleFirer } from "../schedules/firer.js";
import { checkSchedule } from "../schedules/options.js";
import { isUnreachable } from "../store/errors.js";
import type { Claimable } from "../store/store.js";
import { giveUpAfter } from "../timing/deadline.js";
import { RetryDelay } from "../timing/retry-delay.js";
import { Unavailable } from "../values/errors.js";
import type { Claimer } from "./claimer.js";
import { DatabaseWatch } from "./database-watch.js";
import { type OpenWorker, openWorker } from "./open-worker.js";
import type { ServeSettings } from "./options.js";
import { Sweeper } from "./sweeper.js";
import type { WorkerTransport } from "./transport.js";
import { WorkerMetrics } from "./worker-metrics.js";

const afterAbortMs = 1_000;
const closeMs = 2_000;
/** As many fit into `closeMs`. */
const unregisterTries = 5;

export class EngineWorker implements LocalWorker {
  readonly ready: Promise<void>;
  readonly events: Events;
  readonly #settings: ServeSettings;
  readonly #served: ReadonlyMap<string, AnyDefinition>;
  readonly #openTransport: () => Promise<WorkerTransport>;
  readonly #observer: Observer;
  readonly #metrics: WorkerMetrics;
  readonly #database: DatabaseWatch;
  readonly #begun: Promise<void>;
  #open: OpenWorker | undefined;
  #sweeper: Sweeper | undefined;
  #firer: ScheduleFirer | undefined;
  /** null while there is no lease. */
  #workerId: string | null = null;
  #isServing = false;
  #isStopping = false;
  #stopped: Promise<void> | undefined;
  /** Called when nothing is executed. */
  #onIdle: (() => void) | undefined;
  /** The registration under a new id after the lease was lost. */
  #registering: Promise<void> = Promise.resolve();

  constructor(
    settings: ServeSettings,
    openTransport: () => Promise<WorkerTransport>,
    events: Events = new Events(settings.logger),
  ) {
    this.#settings = settings;
    this.#served = new Map(settings.definitions.map((one) => [`${one.name}@${one.version}`, one]));
    this.#openTransport = openTransport;
    this.events = events;
    this.#observer = new Observer(events);
    this.#metrics = new WorkerMetrics(settings.metrics, events, () => this.#inFlight());
    this.#database = new DatabaseWatch(settings.logger, () => this.#rewind(null));
    this.#begun = this.#begin();
    this.ready = this.#begun.catch(async (error: unknown) => {
      await this.#stop();
      throw error;
    });
  }

  get on(): Events["on"] {
    return this.events.on.bind(this.events);
  }

  get once(): Events["once"] {
    return this.events.once.bind(this.events);
  }

  get off(): Events["off"] {
    return this.events.off.bind(this.events);
  }

  metrics(): Promise<string> {
    return this.#metrics.text();
  }

  stop(): Promise<void> {
    // A caller that stops a worker before it is ready need not hear that it never was.
    this.ready.catch(() => {});
    return this.#stop();
  }

  /**
   * Ends at once, as the death of its process would: it waits for nothing and releases nothing, and
   * the outcomes of its steps are dropped. Calls in flight may still arrive.
   */
  abandon(): Promise<void> {
    this.ready.catch(() => {});
    this.#isStopping = true;
    this.#stopped ??= this.#abandon();
    return this.#stopped;
  }

  /**
   * The runs that it executes, or has claimed. At rest are those that only wait: in their slot for
   * a time or a signal, for a slot, or for their batch.
   */
  executing(): { readonly runId: string; readonly isAtRest: boolean }[] {
    if (this.#open === undefined) return [];
    const begun = [...this.#open.executions].map(({ runId, control }) => {
      return { runId, isAtRest: control.isAtRest };
    });
    const unstarted = [...this.#open.claimers].flatMap(({ slots }) =>
      slots.unstartedIds().map((runId) => ({ runId, isAtRest: true })),
    );
    return [...begun, ...unstarted];
  }

  /** Whether it has a free slot in this queue. Batch jobs have slots of their own. */
  hasSlot(queue: string): boolean {
    const slots = this.#open?.claimers.single.get(queue)?.slots;
    return slots !== undefined && slots.free > 0;
  }

  /** Calls the batches that wait for more runs. Answers whether there were any. */
  hurryBatches(): boolean {
    return [...(this.#open?.claimers.batches() ?? [])].map((batches) => batches.hurry()).includes(true);
  }

  reserve({ name, version, queue }: { name: string; version: number; queue: string }): Reservation | null {
    const definition = this.#served.get(`${name}@${version}`);
    if (this.#open === undefined || definition === undefined) return null;
    const { reservations, claimers } = this.#open;
    return reservations.reserve(this.#workerId, claimers.find(queue, definition));
  }

  offer(): Slots | null {
    if (this.#open === undefined) return null;
    return this.#open.reservations.reserveEach(this.#workerId, this.#open.claimers.single);
  }

  hint(queue: string | null): void {
    for (const claimer of this.#claimers(queue)) claimer.hint();
  }

  lower(claimable: Claimable): void {
    for (const claimer of this.#claimers(claimable.queue)) claimer.lower(claimable);
  }

  expect(queue: string, delayMs: number): void {
    for (const claimer of this.#claimers(queue)) claimer.expect(delayMs);
  }

  delivered(runId: string): void {
    this.#open?.inboxes.onSignal(runId);
  }

  cancel(runId: string, reason?: string): void {
    this.#open?.executions.cancel(runId, reason);
  }

  overdue(runId: string): void {
    this.#open?.executions.overdue(runId);
  }

  /** The claimers of a queue, or (null) all. */
  #claimers(queue: string | null): Iterable<Claimer> {
    if (this.#open === undefined) return [];
    return queue === null ? this.#open.claimers : this.#open.claimers.of(queue);
  }

  /** Older runs of this queue, or (null) of any, may have become claimable. */
  #rewind(queue: string | null): void {
    for (const claimer of this.#claimers(queue)) claimer.rewind();
  }

  /** The runs that it executes, by definition; 0 for definitions without any. */
  *#inFlight(): Generator<Reading> {
    for (const { name } of this.#settings.definitions) yield [0, name];
    for (const { definition } of this.#open?.executions ?? []) yield [1, definition.name];
  }

  // The life of a worker: begin, register, lose the lease and register again, stop.

  async #begin(): Promise<void> {
    const { logger, limits } = this.#settings;
    const stopped = (): Unavailable => new Unavailable("the worker was stopped before it was ready");
    const transport = await this.#retry("reach its runs", this.#openTransport);
    if (transport === undefined) throw stopped();
    const open = openWorker(transport, {
      settings: this.#settings,
      served: this.#served,
      events: this.events,
      observer: this.#observer,
      workerId: () => this.#workerId,
      isStopping: () => this.#isStopping || this.#database.isHeld || this.#database.isTooNew,
      mayBegin: () => !this.#isStopping && this.#workerId !== null && !this.#database.isTooNew,
      onBusy: () => this.#sweeper?.hurry(),
      onSchedule: (dueAtMs, askedMs) => this.#firer?.learn(dueAtMs, askedMs),
      onEnded: () => this.#isIdle(open) && this.#onIdle?.(),
      onLost: (reason) => this.#loseLease(open, reason),
      onHeartbeat: (workerId, confirmed, isBack) => this.#onHeartbeat(open, workerId, confirmed, isBack),
    });
    this.#open = open;
    await this.#metrics.open(transport, logger);
    await this.#register(open);
    for (const limit of limits) await this.#retry("set its limits", () => setLimit(transport.store, limit));
    await this.#setSchedules(transport);
    if (this.#isStopping) throw stopped();
    this.#isServing = true;
    transport.hub.workers.add(this);
    transport.hub.listeners.add(this.events);
    if (transport.sweeps) this.#sweeper = this.#startSweeper(transport);
    this.#firer = this.#startFirer(transport);
    for (const claimer of open.claimers) claimer.start();
  }

  async #setSchedules({ schedules }: WorkerTransport): Promise<void> {
    const { schedules: declared, maxPayloadBytes: maxBytes } = this.#settings;
    for (const { times, options } of declared) {
      const { name } = times;
      const schedule = await checkSchedule(name, options, { what: `the schedule "${name}"`, maxBytes });
      await this.#retry("set its schedules", () => schedules.set(schedule));
    }
  }

  /** Takes a new worker id and its lease. */
  async #register({ transport, registration }: OpenWorker): Promise<void> {
    const workerId = await this.#retry("register", () => registration.register());
    if (workerId === undefined) return;
    this.#workerId = workerId;
    if (transport.heartbeat === null) return;
    await this.#retry("check its database", () => this.#database.check(transport, workerId));
  }

  /**
   * Repeats a call until it works; undefined once the worker stops. Throws if waiting cannot help.
   */
  async #retry<T>(what: string, call: () => Promise<T>): Promise<T | undefined> {
    const retryDelay = new RetryDelay();
    while (!this.#isStopping) {
      try {
        return await call();
      } catch (error) {
        // Once it has served, a worker never gives up: a password or a right may come back as well.
        if (!isUnreachable(error) && !this.#isServing) throw error;
        this.#settings.logger.warn({ err: error }, `pawl: the worker cannot ${what}, trying again`);
        await new Promise((resolve) => setTimeout(resolve, retryDelay.next()));
      }
    }
    return undefined;
  }

  /** The lease is lost: no outcome of its claims may be committed. */
  #loseLease(open: OpenWorker, reason: string): void {
    const { logger } = this.#settings;
    logger.error({ workerId: this.#workerId, reason }, "pawl: the lease is lost, steps are aborted");
    this.events.emit("lease.lost", { reason });
    this.#workerId = null;
    open.executions.abortAll(new Error(`the worker lost its lease: ${reason}`));
    for (const claimer of open.claimers) claimer.endWait();
    this.#registering = this.#registerAgain(open);
  }

  async #registerAgain(open: OpenWorker): Promise<void> {
    await open.registration.waitAfterLoss();
    await this.#register(open);
    // Runs that this worker serves may have become claimable meanwhile.
    this.#sweeper?.hurry();
    this.#rewind(null);
  }

  #onHeartbeat(open: OpenWorker, workerId: string, confirmed: ConfirmedHeartbeat, isBack: boolean): void {
    if (workerId !== this.#workerId) return;
    this.#database.setHeld(confirmed.databaseHeld, workerId);
    this.#database.setSchemaProblem(confirmed.schemaProblem, workerId);
    open.executions.forgetCancelled();
    open.leaseCheck.onHeartbeat(workerId, confirmed, isBack);
  }

  #stop(): Promise<void> {
    this.#isStopping = true;
    this.#open?.registration.stopTrying();
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  async #end(): Promise<void> {
    await this.#begun.catch(() => {});
    if (this.#open === undefined) return;
    const { transport, releaser, inboxes, executions, registration } = this.#open;
    const claimers = [...this.#open.claimers];
    transport.hub.workers.delete(this);
    transport.hub.listeners.delete(this.events);
    await this.#registering;
    await giveUpAfter(closeMs, Promise.all(claimers.map((claimer) => claimer.stop())));
    for (const batches of this.#open.claimers.batches()) batches.stop();
    await releaser.releaseAndWait(claimers.flatMap(({ slots }) => slots.takeUnstarted()));
    await this.#drain(this.#open, this.#settings.drainMs);
    for (const { control } of executions) control.stop();
    await this.#drain(this.#open, afterAbortMs);
    const left = [...executions];
    executions.abortAll(new Error("the worker has stopped"));
    await releaser.releaseAndWait(left);
    inboxes.stop();
    if (this.#firer !== undefined) await giveUpAfter(closeMs, this.#firer.stop());
    if (this.#sweeper !== undefined) await giveUpAfter(closeMs, this.#sweeper.stop());
    await registration.close();
    await giveUpAfter(closeMs, this.#unregister(transport));
    releaser.stop();
    this.#workerId = null;
    await this.#metrics.close();
    await transport.close();
  }

  async #abandon(): Promise<void> {
    if (this.#open === undefined) return;
    const { transport, releaser, inboxes, executions, registration } = this.#open;
    transport.hub.workers.delete(this);
    this.#workerId = null;
    for (const claimer of this.#claimers(null)) void claimer.stop();
    executions.abortAll(new Error("the worker has died"));
    releaser.stop();
    inboxes.stop();
    void this.#sweeper?.stop();
    void this.#firer?.stop();
    await registration.close();
    await transport.close();
  }

  /**
   * Releases all its claims, also those that were locked a moment ago. The reaper finds the rest.
   */
  async #unregister({ store }: WorkerTransport): Promise<void> {
    const retryDelay = new RetryDelay();
    for (let count = 1; this.#workerId !== null; count++) {
      try {
        if ((await store.unregister(this.#workerId)) === 0) return;
      } catch (error) {
        this.#settings.logger.warn({ err: error }, "pawl: the worker cannot unregister");
      }
      if (count === unregisterTries) return;
      await new Promise((resolve) => setTimeout(resolve, retryDelay.next()));
    }
  }

  #isIdle({ executions, reservations }: OpenWorker): boolean {
    return executions.size === 0 && reservations.isEmpty;
  }

  /** Resolves when nothing is executed, or after this time. */
  async #drain(open: OpenWorker, longestMs: number): Promise<void> {
    if (this.#isIdle(open)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, longestMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onIdle = undefined;
  }

  /** Schedules are fired by workers that reach the database, unless it is too new for them. */
  #startFirer({ firing, hub }: WorkerTransport): ScheduleFirer | undefined {
    if (firing === undefined) return undefined;
    return new ScheduleFirer({
      store: firing,
      hub,
      events: this.events,
      logger: this.#settings.logger,
      mayFire: () => !this.#isStopping && !this.#database.isTooNew,
    });
  }

  #startSweeper({ store, hub }: WorkerTransport): Sweeper {
    const { logger, reapMs, sweepMs, leaseMs } = this.#settings;
    return new Sweeper({
      store,
      logger,
      events: this.events,
      reapMs,
      sweepMs,
      leaseMs,
      isBusy: () => (this.#open?.executions.size ?? 0) > 0,
      onClaimable: (queue) => this.#rewind(queue),
      onOverdue: (failed) => hub.overdue(failed),
    });
  }
}
