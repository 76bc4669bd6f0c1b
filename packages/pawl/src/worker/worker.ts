/**
 * A worker: serves definitions until it is stopped. It registers (its row is the lease of its claims), then beats,
 * feeds its queues, executes, commits and sweeps. If the lease cannot be relied on any more, it aborts its steps,
 * drops their outcomes, and goes on under a new id, so that its old claims lapse like those of a dead worker. No
 * outage ends the process. Made by `serve`.
 */

import type { AnyDefinition } from "../define/definition.js";
import { Unavailable } from "../values/errors.js";
import type { Claimable, WorkerStore } from "../store/store.js";
import { isUnreachable } from "../store/errors.js";
import { atMost } from "../timing/give-up-after.js";
import { DatabaseWatch } from "./database-watch.js";
import { Events } from "../observe/events.js";
import { Executions } from "./executions.js";
import type { Reading } from "../observe/exposition.js";
import { Claimer } from "./claimer.js";
import { commitBatcher, journalBatcher } from "./outcome-batches.js";
import type { ConfirmedBeat } from "./heartbeat.js";
import { Holdings } from "./lease-check.js";
import { setLimit } from "../local/limits.js";
import type { Hub, LocalWorker, Reservation, Slots } from "../local/hub.js";
import { Observer } from "../observe/observer.js";
import { RetryDelay, retryCall } from "../timing/retry-delay.js";
import { Registration } from "./registration.js";
import { Releaser } from "./release.js";
import type { ServeSettings } from "./options.js";
import { SlotKeeper } from "./slots.js";
import { Sweeper } from "./sweeper.js";
import type { WorkerTransport } from "./transport.js";
import { Watcher } from "../workflow/inbox-watch.js";
import { WorkerMetrics } from "./worker-metrics.js";

const afterAbortMs = 1_000;
const closeMs = 2_000;
/** They fit into that. */
const unregisterTries = 5;

export class EngineWorker implements LocalWorker {
  readonly ready: Promise<void>;
  readonly events: Events;
  readonly #observer: Observer;
  readonly #metrics: WorkerMetrics;
  readonly #database: DatabaseWatch;
  readonly #begun: Promise<void>;
  readonly #settings: ServeSettings;
  readonly #open: () => Promise<WorkerTransport>;
  readonly #served: ReadonlyMap<string, AnyDefinition>;
  readonly #claimers = new Map<string, Claimer>();
  readonly #executions = new Executions();
  /** Ids of claims whose call is in flight. */
  readonly #claiming = new Set<string>();
  #transport: WorkerTransport | undefined;
  #store!: WorkerStore;
  #watcher!: Watcher;
  #releaser!: Releaser;
  #holdings!: Holdings;
  #hub!: Hub;
  #registration: Registration | undefined;
  #sweeper: Sweeper | undefined;
  /** null while there is no lease. */
  #workerId: string | null = null;
  readonly #slots = new SlotKeeper({
    claiming: this.#claiming,
    mayFill: (workerId) => this.#workerId === workerId && !this.#isStopping,
    letGo: (claim) => this.#releaser.letGo([claim]),
    onReturned: () => this.#tellIfIdle(),
  });
  #isStopping = false;
  #idle: (() => void) | undefined;
  #stopped: Promise<void> | undefined;
  /** The registration under a new id after the lease was lost. */
  #registering: Promise<void> = Promise.resolve();

  constructor(
    settings: ServeSettings,
    open: () => Promise<WorkerTransport>,
    events: Events = new Events(settings.logger),
  ) {
    this.#settings = settings;
    this.#open = open;
    this.events = events;
    this.#observer = new Observer(this.events);
    this.#metrics = new WorkerMetrics(settings.metrics, this.events, () => this.#inFlight());
    this.#database = new DatabaseWatch(settings.logger, () => {
      for (const claimer of this.#claimers.values()) claimer.rewind();
    });
    this.#served = new Map(settings.definitions.map((one) => [`${one.name}@${one.version}`, one]));
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
    // Who stops a worker that is not ready yet need not hear that it never was.
    this.ready.catch(() => {});
    return this.#stop();
  }

  #stop(): Promise<void> {
    this.#isStopping = true;
    this.#registration?.stopTrying();
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  /**
   * Ends at once, as the death of its process would: nothing is waited for or let go, and what its steps still do is
   * dropped. Whatever its transport still carries is no business of this worker any more.
   */
  abandon(): Promise<void> {
    this.ready.catch(() => {});
    this.#isStopping = true;
    this.#stopped ??= this.#abandon();
    return this.#stopped;
  }

  async #abandon(): Promise<void> {
    if (this.#transport === undefined) return;
    this.#hub.workers.delete(this);
    this.#workerId = null;
    for (const claimer of this.#claimers.values()) void claimer.stop();
    this.#executions.abortAll(new Error("the worker has died"));
    this.#releaser.stop();
    this.#watcher.stop();
    void this.#sweeper?.stop();
    await this.#registration?.close();
    await this.#transport.close();
  }

  /** What it executes just now, or has claimed for that. At rest is what only waits, in its slot for a time or a signal, or for a slot. */
  executing(): { readonly runId: string; readonly queue: string; readonly isAtRest: boolean }[] {
    const begun = [...this.#executions].map(({ runId, queue, isAtRest }) => {
      return { runId, queue, isAtRest: isAtRest?.() ?? false };
    });
    const unstarted = [...this.#claimers].flatMap(([queue, claimer]) =>
      claimer.unstartedIds().map((runId) => ({ runId, queue, isAtRest: true })),
    );
    return [...begun, ...unstarted];
  }

  reserve({ name, version, queue }: { name: string; version: number; queue: string }): Reservation | null {
    if (!this.#served.has(`${name}@${version}`)) return null;
    return this.#slots.reserve(this.#workerId, this.#claimers.get(queue));
  }

  offer(): Slots | null {
    return this.#slots.offer(this.#workerId, this.#claimers);
  }

  nudge(queue: string | null): void {
    if (queue === null) for (const claimer of this.#claimers.values()) claimer.hint();
    else this.#claimers.get(queue)?.hint();
  }

  lower(claimable: Claimable): void {
    this.#claimers.get(claimable.queue)?.lower(claimable);
  }

  delivered(runId: string): void {
    this.#watcher.tell(runId);
  }

  cancel(runId: string, reason?: string): void {
    this.#executions.cancel(runId, reason);
  }

  expect(queue: string, delayMs: number): void {
    this.#claimers.get(queue)?.expect(delayMs);
  }

  #tellIfIdle(): void {
    if (this.#executions.size === 0 && this.#slots.isIdle) this.#idle?.();
  }

  async #begin(): Promise<void> {
    const { logger, maxStepMs, maxPayloadBytes, drainMs } = this.#settings;
    this.#transport = await this.#persist("reach its runs", this.#open);
    if (this.#transport === undefined) throw new Unavailable("the worker was stopped before it was ready");
    this.#store = this.#transport.store;
    this.#hub = this.#transport.hub;
    this.#releaser = new Releaser(this.#store, logger, () => {
      for (const claimer of this.#claimers.values()) claimer.rewind();
    });
    const events = {
      onClaimable: (claimable: readonly Claimable[]) => this.#hub.claimable(claimable),
      onOrphan: (orphan: { runId: string; claimId: string }) => this.#releaser.release([orphan]),
    };
    const commits = commitBatcher(this.#store, logger, events, this.events);
    const journal = journalBatcher(this.#store, logger, this.events);
    this.#watcher = new Watcher(this.#store, logger);
    this.#executions.open({
      surroundings: {
        store: this.#store,
        commits,
        journal,
        watcher: this.#watcher,
        hub: this.#hub,
        observer: this.#observer,
        logger,
        maxStepMs,
        maxPayloadBytes,
        workerId: () => this.#workerId,
        claiming: this.#claiming,
        claimer: (queue) => this.#claimers.get(queue),
        expect: (queue, delayMs) => this.expect(queue, delayMs),
        patiently: (execution, call) =>
          retryCall(
            () => execution.aborted,
            call,
            (err) =>
              logger.warn({ err, runId: execution.runId }, "pawl: a call for a run failed, trying again"),
          ),
        isStopping: () => this.#isStopping || this.#database.isHeld,
      },
      releaser: this.#releaser,
      claimers: this.#claimers,
      served: this.#served,
      drainMs,
      mayBegin: () => !this.#isStopping && this.#workerId !== null,
      onBusy: () => this.#sweeper?.hurry(),
      onEnded: () => this.#tellIfIdle(),
    });
    this.#holdings = new Holdings({
      store: this.#store,
      logger,
      releaser: this.#releaser,
      executions: this.#executions,
      claimers: this.#claimers,
      claiming: this.#claiming,
      commits,
      workerId: () => this.#workerId,
      cancel: (runId) => this.cancel(runId),
    });
    await this.#metrics.open(this.#transport, logger);
    await this.#register();
    for (const limit of this.#settings.limits) {
      await this.#persist("set its limits", () => setLimit(this.#store, limit));
    }
    if (this.#isStopping) throw new Unavailable("the worker was stopped before it was ready");
    for (const [queue, concurrency] of this.#settings.queues) {
      this.#claimers.set(queue, this.#makeClaimer(queue, concurrency));
    }
    this.#hub.workers.add(this);
    this.#hub.listeners.add(this.events);
    if (this.#transport.sweeps) this.#sweeper = this.#makeSweeper();
    for (const claimer of this.#claimers.values()) claimer.start();
  }

  /** The runs it executes, by definition; of those that it serves also if there are none. */
  *#inFlight(): Generator<Reading> {
    for (const { name } of this.#settings.definitions) yield [0, name];
    for (const { definition } of this.#executions) yield [1, definition.name];
  }

  /** Takes a new worker id and its lease. */
  async #register(): Promise<void> {
    this.#registration ??= new Registration({
      store: this.#store,
      beats: this.#transport!.beats,
      settings: this.#settings,
      onLost: (reason) => this.#lose(reason),
      onBeat: (workerId, confirmed, isBack) => this.#hear(workerId, confirmed, isBack),
    });
    const registration = this.#registration;
    const workerId = await this.#persist("register", () => registration.take());
    if (workerId === undefined) return;
    this.#workerId = workerId;
    if (this.#transport!.beats === null) return;
    await this.#persist("look at its database", () => this.#database.look(this.#transport!, workerId));
  }

  /** Tries until it works, whatever the outage; undefined once the worker stops. Throws what waiting will not mend. */
  async #persist<T>(what: string, attempt: () => Promise<T>): Promise<T | undefined> {
    const retryDelay = new RetryDelay();
    while (!this.#isStopping) {
      try {
        return await attempt();
      } catch (error) {
        // Once it has served, a worker never gives up: a password or a right may come back as well.
        if (!isUnreachable(error) && this.#claimers.size === 0) throw error;
        this.#settings.logger.warn({ err: error }, `pawl: the worker cannot ${what}, trying again`);
        await new Promise((resolve) => setTimeout(resolve, retryDelay.next()));
      }
    }
    return undefined;
  }

  /** The lease is gone: nothing of it is to be committed any more. */
  #lose(reason: string): void {
    const { logger } = this.#settings;
    logger.error({ workerId: this.#workerId, reason }, "pawl: the lease is lost, steps are aborted");
    this.events.emit("lease.lost", { reason });
    this.#workerId = null;
    this.#executions.abortAll(new Error(`the worker lost its lease: ${reason}`));
    for (const claimer of this.#claimers.values()) claimer.endWait();
    this.#registering = this.#registerAgain();
  }

  async #registerAgain(): Promise<void> {
    await this.#registration!.rest();
    await this.#register();
    // Runs that this worker serves may have become claimable meanwhile.
    this.#sweeper?.hurry();
    for (const claimer of this.#claimers.values()) claimer.rewind();
  }

  /** What the database said at a beat of this worker id. */
  #hear(workerId: string, confirmed: ConfirmedBeat, isBack: boolean): void {
    if (workerId !== this.#workerId) return;
    this.#database.hear(confirmed.databaseHeld, workerId);
    this.#executions.forgetCancelled();
    this.#holdings.compare(workerId, confirmed, isBack);
  }

  async #end(): Promise<void> {
    await this.#begun.catch(() => {});
    if (this.#transport === undefined) return;
    this.#hub.workers.delete(this);
    this.#hub.listeners.delete(this.events);
    await this.#registering;
    await atMost(Promise.all([...this.#claimers.values()].map((claimer) => claimer.stop())), closeMs);
    const unstarted = [...this.#claimers.values()].flatMap((claimer) => claimer.takeUnstarted());
    await this.#releaser.letGo(unstarted.map(({ run, claimId }) => ({ runId: run.runId, claimId })));
    await this.#drained(this.#settings.drainMs);
    for (const execution of this.#executions) execution.interruptToStop();
    await this.#drained(afterAbortMs);
    const left = [...this.#executions];
    this.#executions.abortAll(new Error("the worker has stopped"));
    await this.#releaser.letGo(left);
    this.#watcher.stop();
    if (this.#sweeper !== undefined) await atMost(this.#sweeper.stop(), closeMs);
    await this.#registration?.close();
    await atMost(this.#unregister(), closeMs);
    this.#releaser.stop();
    this.#workerId = null;
    await this.#metrics.close();
    await this.#transport.close();
  }

  /** Lets go of what it still holds: also of what was locked a moment ago. What is left after that, the reaper finds. */
  async #unregister(): Promise<void> {
    const retryDelay = new RetryDelay();
    for (let count = 1; this.#workerId !== null; count++) {
      try {
        if ((await this.#store.unregister(this.#workerId)) === 0) return;
      } catch (error) {
        this.#settings.logger.warn({ err: error }, "pawl: the worker cannot unregister");
      }
      if (count === unregisterTries) return;
      await new Promise((resolve) => setTimeout(resolve, retryDelay.next()));
    }
  }

  /** Resolves when nothing is executed any more, or after this time. */
  async #drained(longestMs: number): Promise<void> {
    if (this.#executions.size === 0 && this.#slots.isIdle) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, longestMs);
      this.#idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#idle = undefined;
  }

  #makeSweeper(): Sweeper {
    const { logger, reapMs, sweepMs, leaseMs } = this.#settings;
    return new Sweeper({
      store: this.#store,
      logger,
      events: this.events,
      reapMs,
      sweepMs,
      leaseMs,
      isBusy: () => this.#executions.size > 0,
      onClaimable: (queue) => {
        for (const [name, claimer] of this.#claimers) if (queue === null || queue === name) claimer.rewind();
      },
    });
  }

  #makeClaimer(queue: string, concurrency: number): Claimer {
    const { definitions, prefetch, minDemand, pollMs, maxPollMs, logger } = this.#settings;
    return new Claimer(
      {
        queue,
        concurrency,
        prefetch,
        minDemand,
        pollMs,
        maxPollMs,
        waitMs: this.#transport!.waitMs,
        names: definitions.map((definition) => definition.name),
        versions: definitions.map((definition) => definition.version),
      },
      {
        store: this.#store,
        logger,
        events: this.events,
        workerId: () => this.#workerId,
        claiming: this.#claiming,
        isClockStill: () => this.#hub.clock.isStill,
        execute: (run) => this.#executions.execute(run, queue),
        release: (claims) => this.#releaser.release(claims),
      },
    );
  }
}
