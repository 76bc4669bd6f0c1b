/**
 * The workers of a test: those it serves definitions with, and after a crash those that take over from them. They share the connections of
 * one store, make no heartbeats (nothing but the test ends their claims) and sweep nothing (the test does). Owned by
 * `test-pawl.ts`.
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
import { addressKey } from "../store/postgres/database.js";
import { PostgresStore } from "../store/postgres/postgres-store.js";
import { Activity } from "./activity.js";
import { MortalStore, type WriteWatch } from "./mortal-store.js";
import type { TestServeOptions } from "./options.js";
import type { PrivateDatabase } from "./private-database.js";
import { schema } from "./server.js";

const connections = 5;
const batch = 1_000;
const closeMs = 1_000;
/** Nobody beats: a claim ends by `crash`, or with the test. */
const timings = { lease: "1d", heartbeat: "1h", drainTimeout: "1s", sweepInterval: false } as const;

/** What was asked to be served, and the worker that does; null: it has crashed, and none has taken over yet. */
interface Serving {
  readonly settings: ServeSettings;
  /** Of all that serve it, one after the other. */
  readonly events: Events;
  living: { readonly engine: EngineWorker; readonly mortal: MortalStore } | null;
}

export class TestWorkers {
  readonly activity = new Activity();
  readonly store: PostgresStore;
  readonly #database: PrivateDatabase;
  readonly #hub: Hub;
  readonly #logger: Logger;
  readonly #servings = new Set<Serving>();
  #watch: WriteWatch | null = null;
  /** The crashes that are being dealt with. */
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

  /** The definitions that are served, whether or not a worker lives just now. */
  get definitions(): AnyDefinition[] {
    return [...this.#servings].flatMap(({ settings }) => settings.definitions);
  }

  /** A crash is being dealt with, or nobody has taken over since. */
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

  /** Has everything that was served before a crash served again. */
  async revive(): Promise<void> {
    await this.#crashing;
    await this.#beginAll();
  }

  /** Lets somebody watch what the workers write and have them die at it; the next take over at once. */
  watch(watch: WriteWatch | null): void {
    this.#watch = watch;
  }

  /** All workers die, and their claims end at once. */
  crash(): Promise<void> {
    return this.#survive(() => this.#crash());
  }

  async #crash(): Promise<void> {
    const dead = [...this.#servings].flatMap((serving) => {
      const { living } = serving;
      serving.living = null;
      return living === null ? [] : [living];
    });
    // First of all, so that nothing of what they do meanwhile gets through.
    const cutOff = dead.map(({ mortal }) => mortal.cutOff());
    await Promise.all(dead.map(({ engine }) => engine.abandon()));
    await Promise.all(cutOff);
    const ids = dead.flatMap(({ mortal }) => mortal.workerIds);
    await this.#database.ask(
      `with gone as (delete from ${schema}.workers w where w.id = any ($1::text[]) returning w.id)
       select to_jsonb(count(*)) as answer from gone`,
      [ids],
    );
    await this.repair();
  }

  /** What workers do now and then: the claims of the dead end, what is blocked without need is let in, what is too old goes. */
  async repair(): Promise<void> {
    let marks: string | null = null;
    for (let again = true; again && !this.#isClosed;) {
      const found = await this.store.recover({ limit: batch, repairs: true, marks });
      ({ marks, again } = found);
    }
    let last: string | null = null;
    do ({ last } = await this.store.sweep(batch, last));
    while (last !== null && !this.#isClosed);
  }

  /** The clock was moved, or something else has happened that workers may not know of: all of them look. */
  hint({ clockMoved }: { clockMoved: boolean }): void {
    if (clockMoved) this.#hub.clock.moved();
    const queues = new Set([...this.#servings].flatMap(({ settings }) => [...settings.queues.keys()]));
    this.#hub.claimable([...queues].map((queue) => ({ queue, priority: -32_768, microseconds: 0 })));
  }

  /** What they execute just now. */
  executing(): ReturnType<EngineWorker["executing"]> {
    return [...this.#servings].flatMap(({ living }) => living?.engine.executing() ?? []);
  }

  /** Whether a worker has a slot free for a run of this queue. */
  hasSlot(queue: string): boolean {
    for (const { settings, living } of this.#servings) {
      const executed = living?.engine.executing().filter((execution) => execution.queue === queue) ?? [];
      if (executed.length < (settings.queues.get(queue) ?? 0)) return true;
    }
    return false;
  }

  /** Drops all workers, whatever they do. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#crashing;
    const living = [...this.#servings].flatMap((serving) => serving.living ?? []);
    this.#servings.clear();
    for (const { mortal } of living) void mortal.cutOff();
    await Promise.all(living.map(({ engine }) => engine.abandon()));
    // A statement of a user's may take longer: it ends with the database.
    await giveUpAfter(closeMs, this.store.close());
  }

  async #begin(serving: Serving): Promise<void> {
    if (this.#isClosed) throw new Unavailable("this test was closed");
    const mortal = new MortalStore({
      store: this.store,
      activity: this.activity,
      watch: () => this.#watch,
      onDeath: () => this.#die(),
    });
    const engine = new EngineWorker(
      serving.settings,
      async () => ({
        store: mortal.store,
        hub: this.#hub,
        heartbeat: null,
        sweeps: false,
        waitMs: null,
        close: async () => {},
      }),
      serving.events,
    );
    serving.living = { engine, mortal };
    try {
      await engine.ready;
    } catch (error) {
      // It has crashed before it was ready.
      if (serving.living?.engine !== engine) return;
      serving.living = null;
      throw error;
    }
    // What was started before anybody served it is placed now.
    await this.repair();
    this.hint({ clockMoved: false });
  }

  async #beginAll(): Promise<void> {
    for (const serving of this.#servings) if (serving.living === null) await this.#begin(serving);
  }

  /** A watch has had a worker die: all of them do, and others take over. */
  #die(): void {
    const dying = this.#survive(async () => {
      await this.#crash();
      await this.#beginAll();
    });
    dying.catch((error: unknown) => {
      this.#logger.error({ err: error }, "pawl: nobody took over after a crash, trying again");
    });
  }

  /** One crash after the other. */
  #survive(work: () => Promise<void>): Promise<void> {
    this.#crashes++;
    const done = this.#crashing.then(work).finally(() => {
      this.#crashes--;
      this.activity.tell();
    });
    this.#crashing = done.catch(() => {});
    return done;
  }
}
