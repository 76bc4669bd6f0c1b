/**
 * The server: the REST API, the worker protocol, queues, topics and deliveries, on one database.
 * Programs embed it with `createServer`; the `pawl` command starts it too.
 */

import type { Worker } from "pawl";
import { type Backend, openBackend } from "./backend/backend.js";
import { startDeliverer } from "./delivery/deliverer.js";
import { type App, makeApp } from "./http/app.js";
import { Dashboard } from "./http/dashboard.js";
import { documentApi } from "./http/openapi.js";
import type { Route } from "./http/route-table.js";
import { checkServer, type ServerOptions, type ServerSettings } from "./options.js";
import { addRoutes } from "./routes/index.js";
import { workerRoutes } from "./workers/routes.js";

export interface PawlServer {
  /**
   * The Fastify application, for `inject` and for your own routes (a route without a scope needs
   * "admin").
   */
  readonly app: App;
  /** Every route, with the scope that it needs. */
  readonly routes: readonly Route[];
  /** Begins to listen and returns the URL. */
  listen(): Promise<string>;
  /**
   * Accepts no more connections, answers waiting calls, gives the others `drainTimeout`, then ends.
   */
  close(): Promise<void>;
}

/**
 * How many connections may wait to be accepted: thousands of workers reconnect at once after a
 * restart.
 */
const backlog = 4_096;

export async function createServer(options: ServerOptions = {}): Promise<PawlServer> {
  const settings = checkServer(options);
  const { host, port, drainMs } = settings;
  const backend = await openBackend(settings);
  const dashboard = settings.dashboard ? Dashboard.read() : null;
  const { app, routes } = makeApp({ ...settings, dashboard });
  try {
    if (settings.maxRetentionDays !== null)
      await backend.engine.store.setRetentionCeiling(settings.maxRetentionDays);
    await documentApi(app);
    addRoutes(app, backend, settings);
    workerRoutes(app, backend, () => sweeper.hurry());
  } catch (error) {
    await backend.close();
    throw error;
  }
  const sweeper = backend.engine.startSweeper(settings);
  const firer = backend.engine.startFirer();
  let deliverer: Worker | undefined;
  const listen = async (): Promise<string> => {
    const url = await app.listen({ host, port, backlog });
    deliverer = deliver(backend, settings);
    return url;
  };
  const close = async (): Promise<void> => {
    backend.beginClosing();
    const giveUp = setTimeout(() => app.server.closeAllConnections(), drainMs);
    // A connection whose last answer is out would otherwise stay open for the next request.
    const idle = setInterval(() => app.server.closeIdleConnections(), 20);
    await app.close();
    clearTimeout(giveUp);
    clearInterval(idle);
    await deliverer?.stop();
    await firer.stop();
    await sweeper.stop();
    await backend.close();
  };
  let closed: Promise<void> | undefined;
  return {
    app,
    routes,
    listen,
    close: () => (closed ??= close()),
  };
}

/** The worker that delivers publications to URLs; undefined: another server does that. */
function deliver({ engine }: Backend, { schema, delivery, logger }: ServerSettings): Worker | undefined {
  if (delivery === null) return undefined;
  const worker = startDeliverer({
    url: engine.url,
    schema,
    store: engine.store,
    settings: delivery,
    logger,
  });
  // The worker logs a failure itself; the API is served all the same.
  worker.ready.catch(() => {});
  return worker;
}
