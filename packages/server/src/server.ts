/**
 * The server: REST over the public API, the worker protocol, queues and topics, on one database. Made by `createServer`, embedded
 * or by the `pawl` command.
 */

import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import fastify from "fastify";
import type { Logger } from "pawl";
import type { App } from "./app.js";
import { openParts } from "./parts.js";
import { healthRoutes } from "./routes/health.js";

export interface ServerOptions {
  /** The URL of the database. Default: found as by `connect`. */
  readonly database?: string | undefined;
  /** Default "pawl". */
  readonly schema?: string | undefined;
  /** Default "127.0.0.1". */
  readonly host?: string | undefined;
  /** Default 8080; 0: any that is free. */
  readonly port?: number | undefined;
  readonly logger?: Logger | undefined;
}

export interface PawlServer {
  /** The Fastify application, for `inject` and for routes of your own. */
  readonly app: App;
  /** Begins to listen and answers with the URL. */
  listen(): Promise<string>;
  /** Answers what waits, then ends. */
  close(): Promise<void>;
}

const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export async function createServer(options: ServerOptions = {}): Promise<PawlServer> {
  const { database, schema = "pawl", host = "127.0.0.1", port = 8080, logger = silent } = options;
  const parts = await openParts({ database, schema, connections: 10, logger });
  const app: App = fastify({ forceCloseConnections: "idle" }).withTypeProvider<TypeBoxTypeProvider>();
  healthRoutes(app, parts);
  return {
    app,
    listen: () => app.listen({ host, port }),
    close: async () => {
      await app.close();
      await parts.close();
    },
  };
}
