/**
 * One database as Pawl sees it: its address and its connections. Pools open connections on demand
 * and discard them on any error, so an outage only costs the calls in flight. Nothing here ends the
 * process or keeps it alive. The store, the migrations and the heartbeat use this file.
 */

import pg from "../driver/driver.js";
import { InvalidOption, NotSupported } from "../../values/errors.js";

/** Everything needed to reach the database. You can send it to another thread. */
export interface Address {
  readonly url: string;
  readonly schema: string;
}

// Pawl has private parsers, so the application's settings on `pg.types` cannot change the values
// that the engine reads. Timestamps stay text, because a Date would cut their microseconds.
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

/** Returns the options of one connection. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "pawl",
    // Detects a vanished host within minutes. The default takes two hours.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
  };
}

interface PoolOptions extends pg.ClientConfig {
  /** The pool awaits this before it uses a new connection. */
  onConnect?(client: pg.ClientBase): Promise<void>;
}

/** Opens a pool whose errors never end the process and which, when idle, never keeps it alive. */
export function openPool(url: string, size: number, options: PoolOptions = {}): pg.Pool {
  const pool = new pg.Pool({
    ...connectionOptions(url),
    ...(options as pg.PoolConfig),
    max: size,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
  });
  // An idle connection was lost. The pool has dropped it, and the next call opens another.
  pool.on("error", () => {});
  return pool;
}

/** Returns a key that two addresses share only if they reach the same runs. */
export function addressKey({ url, schema }: Address): string {
  const { host, port, database, user } = new pg.Client({ connectionString: url });
  return JSON.stringify([host, port, database ?? user, schema]);
}

/**
 * Refuses a value that is not a PostgreSQL URL. The error does not repeat it, because it may
 * contain a password. `what` says where the value came from.
 */
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

/** Returns the name of the database that a URL leads to. */
export function databaseName(url: string): string {
  const { database, user } = new pg.Client({ connectionString: url });
  return database ?? user ?? "";
}

/** Returns the URL of another database on the same server. */
export function withDatabase(url: string, name: string): string {
  return url.replace(
    /^([a-z]+:\/\/[^/?#]*)(\/[^?#]*)?/,
    (_, server: string) => `${server}/${encodeURI(name)}`,
  );
}

/** Returns the URL without its password, for display. */
export function withoutPassword(url: string): string {
  return url
    .replace(
      /^([a-z]+:\/\/)([^/?#]*)@/,
      (_, scheme: string, login: string) => `${scheme}${login.replace(/:.*$/s, "")}@`,
    )
    .replace(/([?&])password=[^&#]*(&|(?=#|$))/, "$1")
    .replace(/[?&](?=#|$)/, "");
}

/** Returns the host, port and database of a URL, never its password. */
export function describeAddress(url: string): string {
  const { host, port, database } = new pg.Client({ connectionString: url });
  return host.startsWith("/")
    ? `${host} (${database ?? "default database"})`
    : `${host}:${port}/${database ?? ""}`;
}
