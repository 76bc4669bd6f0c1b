/**
 * `serve`: starts a worker for a list of definitions. Options are checked before anything is opened, so a mistake
 * throws where it was written; what needs the database, or the server before it, is reported by `worker.ready`.
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
import { Caller } from "../store/http/caller.js";
import { HttpWorkerStore, longestWaitMs } from "../store/http/http-worker-store.js";
import { addressKey } from "../store/postgres/database.js";
import { PostgresStore } from "../store/postgres/postgres-store.js";

const connections = 5;
const closeMs = 2_000;

/** A worker, as `serve` makes it. */
export interface Worker {
  /** Resolves once the worker is registered and claims; rejects if it never can: it is stopped then. */
  readonly ready: Promise<void>;
  /**
   * Stops gracefully: claims nothing more, lets unstarted claims go, waits `drainTimeout` for running steps, aborts
   * the rest, and lets go of what is left after one more second, with the attempts unchanged.
   */
  stop(): Promise<void>;
  /** What the worker does, and the clients of its process: calls the listener at each such event; the function it gives takes that back. */
  on: Events["on"];
  /** Calls the listener at the next such event only. */
  once: Events["once"];
  /** Takes a listener away. */
  off: Events["off"];
  /** The metrics of this process as text for Prometheus. */
  metrics(): Promise<string>;
}

declare module "../define/definition.js" {
  interface DefinitionMethods {
    /** Serves this definition alone: `serve([definition], options)`. */
    serve(options?: ServeOptions): Worker;
  }
}

/** Serves these definitions until `worker.stop()`. Installs no process signal handlers. */
export function serve(definitions: readonly AnyDefinition[], options: ServeOptions = {}): Worker {
  const settings = checkServe(definitions, options);
  const target = givenTarget(options.url, options.token);
  if (target.kind === "server") {
    refuseOptions(options, ["schema"], "serve");
    return new EngineWorker(settings, async () => openServer(target));
  }
  return new EngineWorker(settings, () => openPostgres(target.url, settings.schema));
}

/** The way of a worker straight to Postgres. */
async function openPostgres(url: string | undefined, schema: string): Promise<WorkerTransport> {
  const database = await locateSchema(url, schema);
  const address = { url: database.url, schema };
  const store = new PostgresStore(address, { connections });
  return {
    store,
    hub: hubOf(addressKey(address)),
    heartbeat: { kind: "postgres", ...address },
    sweeps: true,
    gauges: (most) => store.gauges(most),
    state: () => store.state(),
    waitMs: null,
    close: async () => {
      await giveUpAfter(closeMs, store.close());
      await database.close();
    },
  };
}

/** The way of a worker through a server, which sweeps for it and holds its claims back until there is work. */
function openServer({ url, token }: ServerAddress): WorkerTransport {
  return {
    store: new HttpWorkerStore(new Caller({ url, token })),
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
