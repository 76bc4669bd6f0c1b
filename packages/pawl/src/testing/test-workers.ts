/**
 * The workers of a test, and the workers that take over after a crash. They share the connections
 * of one store. They send no heartbeats and do not sweep: the test ends claims and sweeps itself.
 * Owned by `test-pawl.ts`.
 */

import type { AnyDefinition } from "../define/definition.js";
import type { Logger } from "../values/logger.js";
import { Unavailable } from "../values/errors.js";
import { Events } from "../observe/events.js";
import { giveUpAfter } from "../timing/deadline.js";
import { type Hub, hubOf } from "../local/hub.js";
import { checkServe, type ServeSettings } from "../worker/options.js";
import { EngineWorker } from "../worker/worker.js";
import type { Worker } from "../api/serve.js";
import { fireDue } from "../schedules/firer.js";
import { LocalSchedules } from "../schedules/local-schedules.js";
import { addressKey } from "../store/postgres/database.js";
import { PostgresStore } from "../store/postgres/postgres-store.js";
import { Activity } from "./activity.js";
import { CrashableStore, type WriteWatch } from "./crashable-store.js";
import type { TestServeOptions } from "./options.js";
import type { PrivateDatabase } from "./private-database.js";
import { schema } from "./server.js";

const connections = 5;
const batch = 1_000;
const closeMs = 1_000;
/** Without heartbeats, a claim ends by `crash` or with the test. */
const timings = { lease: "1d", heartbeat: "1h", drainTimeout: "1s", sweepInterval: false } as const;

/** One call of `serve`, and its worker; null after a crash, until another takes over. */
interface Serving {
  readonly settings: ServeSettings;
  /** Shared by the worker and its successors. */
  readonly events: Events;
  living: { readonly engine: EngineWorker; readonly crashable: CrashableStore } | null;
}

export class TestWorkers {
  readonly activity = new Activity();
  readonly store: PostgresStore;
  readonly #database: PrivateDatabase;
  readonly #hub: Hub;
  readonly #logger: Logger;
  readonly #servings = new Set<Serving>();
  #watch: WriteWatch | null = null;
  /** Resolves when all crashes so far have been handled. */
  #crashing: Promise<unknown> = Promise.resolve();
  #crashes = 0;
  #isClosed = false;

  constructor(database: PrivateDatabase, logger: Logger) {
    this.#database = database;
    this.#logger = logger;
    const address = { url: database.url, schema };
    this.store = new PostgresStore(address, { connections });
    this.#hub = hubOf(addressKey(address));
    this.#hub.clock.stop();
  }

  /** The served definitions, also while their worker is dead. */
  get definitions(): AnyDefinition[] {
    return [...this.#servings].flatMap(({ settings }) => settings.definitions);
  }

  /** Whether a crash is being handled, or no worker has taken over yet. */
  get isCrashed(): boolean {
    return this.#crashes > 0 || [...this.#servings].some(({ living }) => living === null);
  }

  async serve(definitions: readonly AnyDefinition[], options: TestServeOptions): Promise<Worker> {
    const settings = checkServe(definitions, { logger: this.#logger, ...timings, ...options });
    const events = new Events(settings.logger);
    const serving: Serving = { settings, events, living: null };
    this.#servings.add(serving);
    const ready = this.#begin(serving).catch((error: unknown) => {
      this.#servings.delete(serving);
      throw error;
    });
    await ready;
    return {
      ready,
      on: events.on.bind(events),
      once: events.once.bind(events),
      off: events.off.bind(events),
      metrics: async () => (await serving.living?.engine.metrics()) ?? "",
      stop: async () => {
        this.#servings.delete(serving);
        await serving.living?.engine.stop();
      },
    };
  }

  /** Starts new workers for those that have crashed. */
  async revive(): Promise<void> {
    await this.#crashing;
    await this.#beginAll();
  }

  /**
   * Sets the watch that sees all writes and can make workers die. New workers take over at once.
   */
  watch(watch: WriteWatch | null): void {
    this.#watch = watch;
  }

  /** Kills all workers and ends their claims at once. */
  crash(): Promise<void> {
    return this.#survive(() => this.#crash());
  }

  async #crash(): Promise<void> {
    const dead = [...this.#servings].flatMap((serving) => {
      const { living } = serving;
      serving.living = null;
      return living === null ? [] : [living];
    });
    // First, so that no further call of theirs gets through.
    const cutOff = dead.map(({ crashable }) => crashable.cutOff());
    await Promise.all(dead.map(({ engine }) => engine.abandon()));
    await Promise.all(cutOff);
    const ids = dead.flatMap(({ crashable }) => crashable.workerIds);
    await this.#database.ask(
      `with gone as (delete from ${schema}.workers w where w.id = any ($1::text[]) returning w.id)
       select to_jsonb(count(*)) as answer from gone`,
      [ids],
    );
    await this.repair();
  }

  /**
   * Does the work of the sweeper: reclaims runs of dead workers, repairs stuck runs, works off bulk
   * operations, deletes expired runs.
   */
  async repair(): Promise<void> {
    let marks: string | null = null;
    for (let again = true; again && !this.#isClosed;) {
      const found = await this.store.recover({ limit: batch, repairs: true, marks });
      ({ marks, again } = found);
      this.#hub.overdue(found.overdue);
    }
    for (let again = true; again && !this.#isClosed;) ({ again } = await this.store.workBulk(batch));
    let last: string | null = null;
    do ({ last } = await this.store.sweep(batch, last));
    while (last !== null && !this.#isClosed);
  }

  /** Fires the schedules that are due, as a worker or a server does. */
  async fireSchedules(): Promise<void> {
    const [serving] = this.#servings;
    const events = serving?.events ?? new Events(this.#logger);
    const [store, hub, logger] = [this.store, this.#hub, this.#logger];
    const complain = (schedule: string, error: unknown): void =>
      logger.error({ err: error, schedule }, "pawl: a schedule cannot be fired");
    for (let fired = 1; fired > 0 && !this.#isClosed;) {
      ({ fired } = await fireDue({ store, hub, events, logger }, { skip: 0, complain }));
    }
  }

  /** Makes all workers poll, because the clock moved or because of something they cannot know. */
  wake({ clockMoved }: { clockMoved: boolean }): void {
    if (clockMoved) this.#hub.clock.moved();
    const queues = new Set([...this.#servings].flatMap(({ settings }) => [...settings.queues.keys()]));
    this.#hub.claimable([...queues].map((queue) => ({ queue, priority: -32_768, microseconds: 0 })));
  }

  /** The runs that the workers execute now. */
  executing(): ReturnType<EngineWorker["executing"]> {
    return [...this.#servings].flatMap(({ living }) => living?.engine.executing() ?? []);
  }

  /** Whether a worker has a free slot for a run of this queue. */
  hasSlot(queue: string): boolean {
    return [...this.#servings].some(({ living }) => living?.engine.hasSlot(queue));
  }

  /** Calls the batches that wait for more runs. Answers whether there were any. */
  hurryBatches(): boolean {
    return [...this.#servings].map(({ living }) => living?.engine.hurryBatches()).includes(true);
  }

  /** Abandons all workers without waiting for their steps. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#crashing;
    const living = [...this.#servings].flatMap((serving) => serving.living ?? []);
    this.#servings.clear();
    for (const { crashable } of living) void crashable.cutOff();
    await Promise.all(living.map(({ engine }) => engine.abandon()));
    // A statement of user code may take longer; dropping the database ends it.
    await giveUpAfter(closeMs, this.store.close());
  }

  async #begin(serving: Serving): Promise<void> {
    if (this.#isClosed) throw new Unavailable("this test was closed");
    const crashable = new CrashableStore({
      store: this.store,
      activity: this.activity,
      watch: () => this.#watch,
      onDeath: () => this.#die(),
    });
    const engine = new EngineWorker(
      serving.settings,
      async () => ({
        store: crashable.store,
        hub: this.#hub,
        heartbeat: null,
        sweeps: false,
        schedules: new LocalSchedules(this.store, this.#hub, () => null),
        waitMs: null,
        close: async () => {},
      }),
      serving.events,
    );
    serving.living = { engine, crashable };
    try {
      await engine.ready;
    } catch (error) {
      // The worker crashed before it was ready.
      if (serving.living?.engine !== engine) return;
      serving.living = null;
      throw error;
    }
    // Runs that were started by name before now get their definition.
    await this.repair();
    this.wake({ clockMoved: false });
  }

  async #beginAll(): Promise<void> {
    for (const serving of this.#servings) if (serving.living === null) await this.#begin(serving);
  }

  /** A watch made a worker die: kills all workers and starts others. */
  #die(): void {
    const dying = this.#survive(async () => {
      await this.#crash();
      await this.#beginAll();
    });
    dying.catch((error: unknown) => {
      this.#logger.error({ err: error }, "pawl: no worker took over after a crash, trying again");
    });
  }

  /** Handles crashes one after the other. */
  #survive(work: () => Promise<void>): Promise<void> {
    this.#crashes++;
    const done = this.#crashing.then(work).finally(() => {
      this.#crashes--;
      this.activity.notify();
    });
    this.#crashing = done.catch(() => {});
    return done;
  }
}
