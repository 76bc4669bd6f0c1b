/**
 * The server: REST over the public API, the worker protocol, queues and topics, on one database. Made by `createServer`, embedded
 * or by the `pawl` command.
 */

import type { Worker } from "pawl";
import { type App, makeApp } from "./http/app.js";
import { startDeliverer } from "./delivery/deliverer.js";
import { checkServer, type ServerOptions } from "./options.js";
import { openParts } from "./backend/backend.js";
import { documentApi } from "./http/openapi.js";
import type { Route } from "./http/route-table.js";
import { healthRoutes } from "./routes/health.js";
import { limitRoutes } from "./routes/limits.js";
import { metricsRoutes } from "./routes/metrics.js";
import { listingRoutes } from "./routes/listings.js";
import { queueRoutes } from "./routes/queues.js";
import { runRoutes } from "./routes/runs.js";
import { startRoutes } from "./routes/starts.js";
import { topicRoutes } from "./routes/topics.js";
import { workerRoutes } from "./workers/routes.js";
import { sweep } from "./backend/sweeping.js";

export interface PawlServer {
  /** The Fastify application, for `inject` and for routes of your own (which name their scope, or are for "admin"). */
  readonly app: App;
  /** What there is to call, and the scope that each takes. */
  readonly routes: readonly Route[];
  /** Begins to listen and answers with the URL. */
  listen(): Promise<string>;
  /** Takes no more connections, answers what waits, lets the rest end within `drainTimeout`, then ends. */
  close(): Promise<void>;
}

/** How many connections may wait to be accepted: thousands of workers come back at once after a restart. */
const backlog = 4_096;

export async function createServer(options: ServerOptions = {}): Promise<PawlServer> {
  const settings = checkServer(options);
  const { host, port, drainMs } = settings;
  const parts = await openParts(settings);
  const { app, routes } = makeApp(settings);
  try {
    if (settings.maxRetentionDays !== null) await parts.store.setRetentionCeiling(settings.maxRetentionDays);
    await documentApi(app);
    healthRoutes(app, parts);
    startRoutes(app, parts);
    runRoutes(app, parts);
    listingRoutes(app, parts);
    limitRoutes(app, parts);
    metricsRoutes(app, parts, settings.metricsOpen);
    queueRoutes(app, parts);
    topicRoutes(app, parts);
    workerRoutes(app, parts, () => sweeper.hurry());
  } catch (error) {
    await parts.close();
    throw error;
  }
  const sweeper = sweep(parts, settings);
  let deliverer: Worker | undefined;
  const listen = async (): Promise<string> => {
    const url = await app.listen({ host, port, backlog });
    if (settings.delivery !== null) {
      const { schema, delivery, logger } = settings;
      deliverer = startDeliverer({
        url: parts.databaseUrl,
        schema,
        store: parts.store,
        settings: delivery,
        logger,
      });
      // A failure is logged by the worker itself; the API is served all the same.
      deliverer.ready.catch(() => {});
    }
    return url;
  };
  const close = async (): Promise<void> => {
    parts.beginClosing();
    const impatience = setTimeout(() => app.server.closeAllConnections(), drainMs);
    // A connection whose last answer is out would be kept for the next call.
    const idle = setInterval(() => app.server.closeIdleConnections(), 20);
    await app.close();
    clearTimeout(impatience);
    clearInterval(idle);
    await deliverer?.stop();
    await sweeper.stop();
    await parts.close();
  };
  let closed: Promise<void> | undefined;
  return {
    app,
    routes,
    listen,
    close: () => (closed ??= close()),
  };
}
