/**
 * The work of a server but for its sockets: the application with all routes, the sweeper, the firer
 * of schedules and the deliveries, on one database. `createServer` and `createHandler` open it.
 */

import type { Worker } from "pawl";
import { type Backend, openBackend } from "./backend/backend.js";
import { startDeliverer } from "./delivery/deliverer.js";
import { type App, makeApp } from "./http/app.js";
import { Dashboard } from "./http/dashboard.js";
import { meRoutes } from "./http/me.js";
import { documentApi } from "./http/openapi.js";
import type { Route } from "./http/route-table.js";
import type { ServiceSettings } from "./options.js";
import { addRoutes } from "./routes/index.js";
import { workerRoutes } from "./workers/routes.js";

export interface Service {
  readonly app: App;
  readonly routes: readonly Route[];
  /** Begins to send deliveries, unless the settings say no. */
  deliver(): void;
  /** Waiting calls answer at once from now on. */
  beginClosing(): void;
  /** Ends everything. Call it when the last request is answered. */
  end(): Promise<void>;
}

export async function openService(settings: ServiceSettings): Promise<Service> {
  const { basePath } = settings;
  const backend = await openBackend(settings);
  const dashboard = settings.dashboard === null ? null : Dashboard.read({ ...settings.dashboard, basePath });
  const { app, routes } = makeApp({
    ...settings,
    dashboard,
    hidesPayloads: settings.dashboard?.payloads === false,
  });
  try {
    if (settings.maxRetentionDays !== null)
      await backend.engine.store.setRetentionCeiling(settings.maxRetentionDays);
    await documentApi(app, basePath);
    meRoutes(app);
    addRoutes(app, backend, settings);
    workerRoutes(app, backend, () => sweeper.hurry());
  } catch (error) {
    await backend.close();
    throw error;
  }
  const sweeper = backend.engine.startSweeper(settings);
  const firer = backend.engine.startFirer();
  let deliverer: Worker | undefined;
  return {
    app,
    routes,
    deliver: () => (deliverer ??= deliver(backend, settings)),
    beginClosing: () => backend.beginClosing(),
    end: async () => {
      await deliverer?.stop();
      await firer.stop();
      await sweeper.stop();
      await backend.close();
    },
  };
}

/** The worker that delivers publications to URLs; undefined: another server does that. */
function deliver({ engine }: Backend, { schema, delivery, logger }: ServiceSettings): Worker | undefined {
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
