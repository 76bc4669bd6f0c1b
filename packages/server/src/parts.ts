/** What the routes share: the client, the store and the hub of the one database that this server is for. */

import { addressKey, type Hub, hubOf, locateSchema, PostgresStore } from "pawl/engine";
import { connect, type Logger, type Pawl } from "pawl";

export interface Parts {
  /** The public API, for everything that it can do. */
  readonly pawl: Pawl;
  /** The calls of workers, and batches that the public API has no call for. */
  readonly store: PostgresStore;
  /** What this process tells itself about these runs. */
  readonly hub: Hub;
  readonly logger: Logger;
  close(): Promise<void>;
}

export interface PartsOptions {
  readonly database: string | undefined;
  readonly schema: string;
  /** How many connections the routes may open, for the client and for workers each. */
  readonly connections: number;
  readonly logger: Logger;
}

export async function openParts({ database, schema, connections, logger }: PartsOptions): Promise<Parts> {
  const located = await locateSchema(database, schema);
  const address = { url: located.url, schema };
  const store = new PostgresStore(address, { connections });
  const pawl = connect(located.url, { schema, pool: connections, logger });
  return {
    pawl,
    store,
    hub: hubOf(addressKey(address)),
    logger,
    close: async () => {
      await pawl.close();
      await store.close();
      await located.close();
    },
  };
}
