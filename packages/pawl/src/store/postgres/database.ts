/**
 * One database as Pawl sees it: where it is, and its connections. Connections are made when they are needed and thrown away on any error, so an outage only ever costs the calls that were in flight.
 * Nothing here ends the process or keeps it alive. Used by the store, the migrations and the heartbeat.
 */

import pg from "pg";
import { InvalidOption, NotSupported } from "../../values/errors.js";

/** Everything needed to reach the database; can be sent to another thread. */
export interface Address {
  readonly url: string;
  readonly schema: string;
}

// Private parsers (timestamps stay text, a Date would cut their microseconds): what the application sets on
// `pg.types` must not change what the engine reads.
const parsers = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"],
  [21, Number],
  [23, Number],
  [701, Number],
]);
const keepText = (text: string): string => text;
export const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number) => parsers.get(oid) ?? keepText,
};

/** Options of one connection. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "pawl",
    // A host that has vanished is noticed within minutes: by default only after two hours.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
  };
}

interface PoolOptions extends pg.ClientConfig {
  /** Is waited for before a new connection is used. */
  onConnect?(client: pg.ClientBase): Promise<void>;
}

/** A pool that never ends the process by an error and, when idle, never keeps it alive. */
export function openPool(url: string, size: number, options: PoolOptions = {}): pg.Pool {
  const pool = new pg.Pool({
    ...connectionOptions(url),
    ...(options as pg.PoolConfig),
    max: size,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
  });
  // An idle connection was lost: the pool has dropped it, the next call opens another.
  pool.on("error", () => {});
  return pool;
}

/** A key that is the same for two addresses only if they reach the same runs. */
export function addressKey({ url, schema }: Address): string {
  const { host, port, database, user } = new pg.Client({ connectionString: url });
  return JSON.stringify([host, port, database ?? user, schema]);
}

/** Refuses what is no PostgreSQL URL, without repeating it: it may hold a password. `what` says where it came from. */
export function checkUrl(url: unknown, what = "url"): string {
  if (typeof url === "string" && /^postgres(ql)?:\/\//.test(url)) {
    try {
      void new pg.Client({ connectionString: url });
      return url;
    } catch {
      throw new InvalidOption(
        `${what} is not a valid PostgreSQL URL; it looks like postgres://user@host:5432/database`,
      );
    }
  }
  if (typeof url === "string" && /^https?:\/\//i.test(url)) {
    throw new NotSupported(
      `${what} is the URL of a server, and this works on the database itself: give a postgres:// URL`,
    );
  }
  throw new InvalidOption(
    `${what} must be a string that begins with postgres:// or postgresql://, or (of a server) with http:// or https://`,
  );
}

/** The name of the database that a URL leads to. */
export function databaseName(url: string): string {
  const { database, user } = new pg.Client({ connectionString: url });
  return database ?? user ?? "";
}

/** The URL of another database of the same server. */
export function withDatabase(url: string, name: string): string {
  return url.replace(
    /^([a-z]+:\/\/[^/?#]*)(\/[^?#]*)?/,
    (_, server: string) => `${server}/${encodeURI(name)}`,
  );
}

/** The URL without its password, to be shown. */
export function withoutPassword(url: string): string {
  return url
    .replace(
      /^([a-z]+:\/\/)([^/?#]*)@/,
      (_, scheme: string, login: string) => `${scheme}${login.replace(/:.*$/s, "")}@`,
    )
    .replace(/([?&])password=[^&#]*(&|(?=#|$))/, "$1")
    .replace(/[?&](?=#|$)/, "");
}

/** Host, port and database of a URL, never its password. */
export function describeAddress(url: string): string {
  const { host, port, database } = new pg.Client({ connectionString: url });
  return host.startsWith("/")
    ? `${host} (${database ?? "default database"})`
    : `${host}:${port}/${database ?? ""}`;
}
