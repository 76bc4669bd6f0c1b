/**
 * One database as Pawl sees it: its address and its connections. Pools open connections on demand
 * and discard them on any error, so an outage only costs the calls in flight. Nothing here ends the
 * process or keeps it alive. The store, the migrations and the heartbeat use this file.
 */

import pg from "../driver/driver.js";
import { driverOptions, isPool, placeOf, sourceKey } from "../driver/source.js";
import type { ConnectionOptions, DatabaseSource, PgPool } from "../driver/source-types.js";
import { InvalidOption, NotSupported } from "../../values/errors.js";

/** Everything needed to reach the database. */
export interface Address {
  /** A URL, connection options, or a pool of the user. */
  readonly url: DatabaseSource;
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
export function connectionOptions(source: string | ConnectionOptions): pg.ClientConfig {
  return {
    ...driverOptions(source),
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

/** Connections to share: a pool of Pawl's own, or one of the user. */
export type Connections = Pick<pg.Pool, "query" | "connect" | "end">;

/**
 * Opens a pool whose errors never end the process and which, when idle, never keeps it alive. The
 * user's own pool keeps its settings and stays open: `size` and `onConnect` are not for it.
 */
export function openPool(source: DatabaseSource, size: number, options: PoolOptions = {}): Connections {
  if (isPool(source)) return sharing(source, options.query_timeout);
  const pool = new pg.Pool({
    ...connectionOptions(source),
    ...(options as pg.PoolConfig),
    max: size,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
  });
  // An idle connection was lost. The pool has dropped it, and the next call opens another.
  pool.on("error", () => {});
  return pool;
}

/** The user's pool, with the time limit of Pawl's own calls. */
function sharing(given: PgPool, timeoutMs: number | undefined): Connections {
  const pool = given as PgPool & Connections;
  const limit = timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
  const query = (config: string | pg.QueryConfig): Promise<pg.QueryResult> =>
    pool.query({ ...(typeof config === "string" ? { text: config } : config), ...limit });
  return {
    query: query as Connections["query"],
    connect: (() => pool.connect()) as Connections["connect"],
    end: async () => {},
  };
}

/** One connection, and how to end it: the user's pool gets its connection back. */
export interface Opened {
  readonly client: pg.ClientBase;
  readonly end: () => Promise<void>;
}

/**
 * Opens one connection. Without a listener, losing it between two statements would end the process.
 * With one, the next statement fails.
 */
export async function openClient(source: DatabaseSource, options: pg.ClientConfig = {}): Promise<Opened> {
  if (isPool(source)) return borrow(source as PgPool & Connections);
  const client = new pg.Client({ ...connectionOptions(source), ...options });
  client.on("error", () => {});
  const end = (): Promise<void> => client.end().catch(() => {});
  try {
    await client.connect();
  } catch (error) {
    await end();
    throw error;
  }
  return { client, end };
}

async function borrow(pool: Connections): Promise<Opened> {
  const client = await pool.connect();
  const ignore = (): void => {};
  client.on("error", ignore);
  const end = async (): Promise<void> => {
    // A transaction that is open, or a connection that is lost, is nothing for the next user. The
    // driver of a user's pool may be older than this question.
    let isClean = client.getTransactionStatus?.() === "I";
    if (!isClean) await client.query("rollback").then(() => (isClean = true), ignore);
    client.off("error", ignore);
    client.release(!isClean);
  };
  return { client, end };
}

/** Returns a key that two addresses share only if they reach the same runs. */
export function addressKey({ url, schema }: Address): string {
  return JSON.stringify([sourceKey(url), schema]);
}

/**
 * Refuses a value that is not a PostgreSQL URL. The error does not repeat it, because it may
 * contain a password. `what` says where the value came from.
 */
export function checkUrl(url: unknown, what = "url"): string {
  if (typeof url === "string" && /^postgres(ql)?:\/\//.test(url)) {
    try {
      void new pg.Client(driverOptions(url));
      return url;
    } catch (error) {
      if (error instanceof InvalidOption) throw error;
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
  const { database, user } = placeOf(url)!;
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
export function describeAddress(source: DatabaseSource): string {
  const place = placeOf(source);
  if (place === null) return "your own pool";
  const { host, port, database } = place;
  return host.startsWith("/")
    ? `${host} (${database ?? "default database"})`
    : `${host}:${port}/${database ?? ""}`;
}
