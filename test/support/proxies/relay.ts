/**
 * What all proxies of tests are made of: a server on a port of its own that connects every client to a database, and can end all
 * connections. What passes between the two is up to who makes it.
 */

import { connect, createServer, type Socket } from "node:net";
import pg from "pg";

/** One client and its connection to the database. The end of one is the end of both. */
export interface Pair {
  readonly client: Socket;
  readonly database: Socket;
  end(): void;
}

export interface Relay {
  /** The address of the database through it. */
  readonly url: string;
  /** Ends all connections. */
  reset(): void;
  /** New connections lead to this server; those that are open are ended. */
  leadTo(url: string): void;
  close(): Promise<void>;
}

/** `begin` is called with each new pair, before anything has passed. */
export async function relayTo(target: string, begin: (pair: Pair) => void): Promise<Relay> {
  const pairs = new Set<Pair>();
  let address = addressOf(target);
  const server = createServer((client) => {
    const database = connect(address);
    const pair = {
      client,
      database,
      end: () => {
        pairs.delete(pair);
        client.destroy();
        database.destroy();
      },
    };
    pairs.add(pair);
    for (const socket of [client, database]) socket.on("error", () => {}).on("close", pair.end);
    begin(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(target);
  url.search = "";
  url.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const reset = (): void => {
    for (const pair of pairs) pair.end();
  };
  return {
    url: url.href,
    reset,
    leadTo: (other) => {
      address = addressOf(other);
      reset();
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      reset();
      await closed;
    },
  };
}

function addressOf(url: string): { path: string } | { host: string; port: number } {
  const { host, port } = new pg.Client({ connectionString: url });
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}
