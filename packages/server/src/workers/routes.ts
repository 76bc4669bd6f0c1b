/**
 * The routes of the worker protocol, with the workers that wait here for runs. Called by
 * `createServer`.
 */

import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import { claimRoutes } from "./claim-routes.js";
import { commitRoutes } from "./commit-routes.js";
import { readRoutes } from "./read-routes.js";
import { registerRoutes } from "./register-routes.js";
import { Waiters } from "./waiters.js";

/** `hurry`: a worker has registered, and the sweeper may have runs to place for it. */
export function workerRoutes(app: App, backend: Backend, hurry: () => void): void {
  const { store, hub } = backend.engine;
  const waiters = new Waiters({
    store,
    hub,
    logger: backend.logger,
    claimsPerToken: Math.ceil(backend.connections / 4),
  });
  backend.closing.addEventListener("abort", () => waiters.beginClosing(), { once: true });
  app.addHook("onClose", () => waiters.close());
  const protocol = { app, backend, waiters };
  registerRoutes(protocol, hurry);
  claimRoutes(protocol);
  commitRoutes(protocol);
  readRoutes(protocol);
}
