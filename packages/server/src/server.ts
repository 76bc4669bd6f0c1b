/**
 * The server: the REST API, the worker protocol, queues, topics and deliveries, on one database.
 * Programs embed it with `createServer`; the `pawl` command starts it too.
 */

import type { App } from "./http/app.js";
import type { Route } from "./http/route-table.js";
import { checkServer, type ServerOptions } from "./options.js";
import { openService } from "./service.js";

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
  const service = await openService(settings);
  const { app, routes } = service;
  const listen = async (): Promise<string> => {
    const url = await app.listen({ host, port, backlog });
    service.deliver();
    return url;
  };
  const close = async (): Promise<void> => {
    service.beginClosing();
    const giveUp = setTimeout(() => app.server.closeAllConnections(), drainMs);
    // A connection whose last answer is out would otherwise stay open for the next request.
    const idle = setInterval(() => app.server.closeIdleConnections(), 20);
    await app.close();
    clearTimeout(giveUp);
    clearInterval(idle);
    await service.end();
  };
  let closed: Promise<void> | undefined;
  return {
    app,
    routes,
    listen,
    close: () => (closed ??= close()),
  };
}
