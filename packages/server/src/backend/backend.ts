/**
 * The services that the routes call: the public client and the engine, both on the one database of
 * this server, and the limit on waiting calls. Opened by `createServer`, closed after the last
 * answer.
 */

import { setMaxListeners } from "node:events";
import { connect, type Logger, type Pawl, Unavailable } from "pawl";
import { type Engine, openEngine } from "pawl/engine";
import { Budget } from "../http/budget.js";

export interface Backend {
  /** The public API, for everything that it can do. */
  readonly pawl: Pawl;
  /** The calls of workers, batches, and everything else that the public API does not have. */
  readonly engine: Engine;
  /** How many runs, messages and claims callers wait for. */
  readonly waits: Budget;
  /**
   * Aborted when the server begins to close: every waiting call answers at once
   * (`http/long-poll.ts`).
   */
  readonly closing: AbortSignal;
  /** How many connections the store of the engine may open. */
  readonly connections: number;
  /** The schema of its database. */
  readonly schema: string;
  readonly logger: Logger;
  /** Ends all waiting calls; call `close` once they are answered. */
  beginClosing(): void;
  close(): Promise<void>;
}

/** How many runs, messages and claims callers may wait for at once. */
const waits = { perCaller: 10_000, inAll: 100_000 };

export interface BackendOptions {
  readonly database: string | undefined;
  readonly schema: string;
  /** How many connections the client and the engine may open, each. */
  readonly connections: number;
  readonly maxPayloadBytes: number;
  readonly logger: Logger;
}

export async function openBackend(options: BackendOptions): Promise<Backend> {
  const { database, schema, connections, maxPayloadBytes, logger } = options;
  const engine = await openEngine({ url: database, schema, connections, maxPayloadBytes, logger });
  const pawl = connect(engine.url, { schema, pool: connections, maxPayloadBytes, logger });
  const closing = new AbortController();
  // Thousands of calls may wait at once.
  setMaxListeners(0, closing.signal);
  return {
    pawl,
    engine,
    waits: new Budget({
      ...waits,
      what: "waits",
      advice: "wait for fewer things at a time, or retry when some have arrived",
    }),
    closing: closing.signal,
    connections,
    schema,
    logger,
    beginClosing: () => closing.abort(),
    close: async () => {
      await pawl.close();
      await engine.close(new Unavailable("the server was closed"));
    },
  };
}
