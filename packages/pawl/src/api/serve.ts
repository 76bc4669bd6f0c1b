/**
 * `serve`: starts a worker for a list of definitions. It checks options before it opens anything,
 * so a mistake throws at the call. `worker.ready` reports errors of the database or the server.
 */

import { type AnyDefinition, definitionMethods } from "../define/definition.js";
import { giveUpAfter } from "../timing/deadline.js";
import type { Events } from "../observe/events.js";
import { hubOf } from "../local/hub.js";
import { checkServe, type ServeOptions } from "../worker/options.js";
import type { WorkerTransport } from "../worker/transport.js";
import { EngineWorker } from "../worker/worker.js";
import { givenTarget, locateSchema } from "./locate.js";
import { refuseOptions, type ServerAddress } from "../store/http/address.js";
import { checkTicks } from "../schedules/cron.js";
import { LocalSchedules } from "../schedules/local-schedules.js";
import { Caller } from "../store/http/caller.js";
import { HttpWorkerStore, longestWaitMs } from "../store/http/http-worker-store.js";
import { workerSchedules } from "../store/http/http-schedules.js";
import type { DatabaseSource } from "../store/driver/source-types.js";
import type { NextDueReader } from "../store/schedule-store.js";
import { addressKey } from "../store/postgres/database.js";
import { PostgresStore } from "../store/postgres/postgres-store.js";

const connections = 5;
const closeMs = 2_000;

/** A worker that `serve` started. */
export interface Worker {
  /**
   * Resolves when the worker has registered and claims runs. Rejects if it never can; the worker
   * has then stopped.
   */
  readonly ready: Promise<void>;
  /**
   * Stops gracefully: claims nothing more, releases claims that have not begun, waits
   * `drainTimeout` for running steps, and aborts the rest. After one more second it releases the
   * runs that are left, without counting an attempt.
   */
  stop(): Promise<void>;
  /**
   * Calls the listener at each event of the worker and of the clients of its process. Returns a
   * function that removes it.
   */
  on: Events["on"];
  /** Calls the listener at the next event only. */
  once: Events["once"];
  /** Removes a listener. */
  off: Events["off"];
  /** The metrics of this process in the text format of Prometheus. */
  metrics(): Promise<string>;
}

declare module "../define/definition.js" {
  interface DefinitionMethods {
    /** Serves this definition alone: `serve([definition], options)`. */
    serve(options?: ServeOptions): Worker;
  }
}

/**
 * Starts a worker for these definitions. It runs until `worker.stop()` and installs no process
 * signal handlers.
 */
export function serve(definitions: readonly AnyDefinition[], options: ServeOptions = {}): Worker {
  const settings = checkServe(definitions, options);
  for (const { times } of settings.schedules) checkTicks(times);
  const target = givenTarget(options.url, options.token);
  if (target.kind === "server") {
    refuseOptions(options, ["schema"], "serve");
    return new EngineWorker(settings, async () => openServer(target));
  }
  return new EngineWorker(settings, () => openPostgres(target.url, settings.schema));
}

interface PostgresWorkerTransport extends WorkerTransport {
  readonly nextDue: NextDueReader["nextDue"];
}

/** The transport of a worker straight to Postgres. */
export async function openPostgres(
  url: DatabaseSource | undefined,
  schema: string,
): Promise<PostgresWorkerTransport> {
  const database = await locateSchema(url, schema);
  const address = { url: database.url, schema };
  const store = new PostgresStore(address, { connections });
  const hub = hubOf(addressKey(address));
  return {
    store,
    hub,
    heartbeat: { kind: "postgres", ...address },
    sweeps: true,
    nextDue: (queues, served) => store.nextDue(queues, served),
    schedules: new LocalSchedules(store, hub, () => null),
    firing: store,
    gauges: (most) => store.gauges(most),
    state: () => store.state(),
    waitMs: null,
    close: async () => {
      await giveUpAfter(closeMs, store.close());
      await database.close();
    },
  };
}

/**
 * The transport of a worker through a server, which sweeps for the worker and lets claims wait for
 * work.
 */
function openServer({ url, token }: ServerAddress): WorkerTransport {
  const caller = new Caller({ url, token });
  return {
    store: new HttpWorkerStore(caller),
    schedules: workerSchedules(caller),
    hub: hubOf(url),
    heartbeat: { kind: "server", url, token },
    sweeps: false,
    waitMs: longestWaitMs,
    close: async () => {},
  };
}

Object.assign(definitionMethods, {
  serve(this: AnyDefinition, options?: ServeOptions): Worker {
    return serve([this], options);
  },
});
