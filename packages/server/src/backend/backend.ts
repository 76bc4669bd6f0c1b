/** What the routes share: the client, the store and the hub of the one database that this server is for. */

import { setMaxListeners } from "node:events";
import {
  addressKey,
  Events,
  copyWarning,
  heldWarning,
  type Hub,
  hubOf,
  isBusy,
  isOutage,
  LockLanes,
  locateSchema,
  PostgresStore,
  Results,
  Starter,
} from "pawl/engine";
import { connect, type Logger, type Pawl, Unavailable } from "pawl";
import { Budget } from "../http/budget.js";

export interface Parts {
  /** The public API, for everything that it can do. */
  readonly pawl: Pawl;
  /** The calls of workers, and batches that the public API has no call for. */
  readonly store: PostgresStore;
  /** For the heartbeats of workers alone: no other call may delay them. */
  readonly beats: PostgresStore;
  /** For the question whether the database answers: it must not wait behind other calls. */
  readonly probe: PostgresStore;
  /** Where the database is. */
  readonly databaseUrl: string;
  /** What this process tells itself about these runs. */
  readonly hub: Hub;
  /** What this process does with these runs: starts, signals, cancellations, sweeps. */
  readonly events: Events;
  /** Starts of this process, those that come together in one call. */
  readonly starter: Starter;
  /** Who waits for the end of runs. */
  readonly results: Results;
  /** How many things callers wait for: each is polled for. */
  readonly waits: Budget;
  /** Aborted when the server begins to close: whatever is held back is to be answered at once (see `held.ts`). */
  readonly closing: AbortSignal;
  /** How long a value may be as JSON. */
  readonly maxPayloadBytes: number;
  /** How many connections `store` may open. */
  readonly connections: number;
  readonly logger: Logger;
  /** Lets go of all that waits; `close` follows once it is answered. */
  beginClosing(): void;
  close(): Promise<void>;
}

/** How many runs, messages and claims may be waited for at once. */
const waits = { perCaller: 10_000, inAll: 100_000 };
const beatConnections = 2;
/** How long the database may take to answer that it is there. */
const probeMs = 3_000;

export interface PartsOptions {
  readonly database: string | undefined;
  readonly schema: string;
  /** How many connections the routes may open, for the client and for workers each. */
  readonly connections: number;
  readonly maxPayloadBytes: number;
  readonly logger: Logger;
}

export async function openParts(options: PartsOptions): Promise<Parts> {
  const { database, schema, connections, maxPayloadBytes, logger } = options;
  const located = await locateSchema(database, schema);
  const address = { url: located.url, schema };
  const store = new PostgresStore(address, { connections });
  // Remote workers do not see the database: the server says it for them.
  const { isCopy, isHeld, identity } = await store.state().catch(async (error: unknown) => {
    await store.close();
    await located.close();
    throw error;
  });
  if (isCopy) logger.warn({ identity }, copyWarning);
  if (isHeld) logger.warn({ identity }, heldWarning);
  const beats = new PostgresStore(address, { connections: beatConnections });
  const probe = new PostgresStore(address, { connections: 1, statementMs: probeMs });
  const hub = hubOf(addressKey(address));
  const pawl = connect(located.url, { schema, pool: connections, maxPayloadBytes, logger });
  const results = new Results(store, hub, logger);
  const events = new Events(logger);
  hub.listeners.add(events);
  const closing = new AbortController();
  // Thousands of calls may be held at once.
  setMaxListeners(0, closing.signal);
  return {
    databaseUrl: located.url,
    pawl,
    store,
    beats,
    probe,
    hub,
    events,
    starter: new Starter(store, hub, { isOutage, isBusy, lanes: new LockLanes({ isBusy, connections }) }),
    results,
    waits: new Budget({
      ...waits,
      what: "waits",
      advice: "wait for fewer things at a time, or ask again when some have come",
    }),
    closing: closing.signal,
    maxPayloadBytes,
    connections,
    logger,
    beginClosing: () => closing.abort(),
    close: async () => {
      hub.listeners.delete(events);
      results.close(new Unavailable("the server was closed"));
      await pawl.close();
      await store.close();
      await beats.close();
      await probe.close();
      await located.close();
    },
  };
}
