/**
 * The server: REST over the public API, the worker protocol, queues and topics, on one database. Made by `createServer`, embedded
 * or by the `pawl` command.
 */

import { type App, makeApp } from "./app.js";
import { checkServer, type ServerOptions } from "./options.js";
import { openParts } from "./parts.js";
import { healthRoutes } from "./routes/health.js";
import { workerRoutes } from "./routes/workers.js";

export interface PawlServer {
  /** The Fastify application, for `inject` and for routes of your own (which name their scope, or are for "admin"). */
  readonly app: App;
  /** Begins to listen and answers with the URL. */
  listen(): Promise<string>;
  /** Takes no more connections, answers what waits, lets the rest end within `drainTimeout`, then ends. */
  close(): Promise<void>;
}

export async function createServer(options: ServerOptions = {}): Promise<PawlServer> {
  const settings = checkServer(options);
  const { host, port, drainMs } = settings;
  const parts = await openParts(settings);
  const app = makeApp(settings);
  healthRoutes(app, parts);
  workerRoutes(app, parts, () => {});
  const close = async (): Promise<void> => {
    parts.beginClosing();
    const impatience = setTimeout(() => app.server.closeAllConnections(), drainMs);
    await app.close();
    clearTimeout(impatience);
    await parts.close();
  };
  let closed: Promise<void> | undefined;
  return {
    app,
    listen: () => app.listen({ host, port }),
    close: () => (closed ??= close()),
  };
}
