/**
 * One database as Pawl sees it: where it is, its connections, and what its errors mean. Connections are made when
 * they are needed and thrown away on any error, so an outage only ever costs the calls that were in flight.
 * Nothing here ends the process or keeps it alive. Used by the store, the migrations and the heartbeat.
 */

import pg from "pg";
import { InvalidOption, NotSupported, PawlError, Unavailable } from "../../define/errors.js";

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
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
  };
}

/** A pool that never ends the process by an error and, when idle, never keeps it alive. */
export function openPool(url: string, size: number): pg.Pool {
  const pool = new pg.Pool({
    ...connectionOptions(url),
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

/** Refuses what is no PostgreSQL URL, without repeating the password. */
export function checkUrl(url: unknown): string {
  if (typeof url === "string" && /^postgres(ql)?:\/\//.test(url)) {
    try {
      void new pg.Client({ connectionString: url });
      return url;
    } catch {
      throw new InvalidOption(
        "url is not a valid PostgreSQL URL; it looks like postgres://user@host:5432/database",
      );
    }
  }
  if (typeof url === "string" && /^https?:\/\//.test(url)) {
    throw new NotSupported("the HTTP transport is not part of this version; give a postgres:// URL");
  }
  throw new InvalidOption("url must be a string that begins with postgres:// or postgresql://");
}

/** The schema is not there, or not the one this release needs: no outage, waiting will not help. */
export class SchemaMismatch extends Unavailable {}

/** SQLSTATE of an error, if it came from the server. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether trying the same call again at once may help: deadlock and serialization failure. */
export function isRetryable(error: unknown): boolean {
  const code = sqlState(error);
  return code === "40P01" || code === "40001";
}

/**
 * Whether the database, rather than this call, is at fault: no connection (08), shutdown and recovery (57P), read
 * only after a failover (25006), out of connections, disk or memory (53), I/O errors (58), or no answer at all.
 */
export function isOutage(error: unknown): boolean {
  if (error instanceof SchemaMismatch) return false;
  if (error instanceof Unavailable) return true;
  if (error instanceof PawlError) return false;
  const code = sqlState(error);
  if (code === undefined) return true;
  return /^(08|57P|53|58)/.test(code) || code === "25006" || code === "57014";
}

/** The same error as users should meet it. */
export function explain(error: unknown, { url, schema }: Address): unknown {
  if (error instanceof PawlError) return error;
  const code = sqlState(error);
  const message = error instanceof Error ? error.message : String(error);
  if (code === "3F000" || code === "42P01" || code === "42883") {
    return new SchemaMismatch(
      `the schema "${schema}" of Pawl is missing or older than this release (${message}); run ${migrateCall(schema)} once`,
      { cause: error },
    );
  }
  if (isOutage(error)) {
    return new Unavailable(
      `the database at ${describeAddress(url)} cannot be used: ${message || "no connection"}`,
      {
        cause: error,
      },
    );
  }
  return error;
}

/** How a user brings the schema up to date. */
export function migrateCall(schema: string): string {
  return schema === "pawl" ? "migrate({ url })" : `migrate({ url, schema: ${JSON.stringify(schema)} })`;
}

/** Host, port and database of a URL, never its password. */
function describeAddress(url: string): string {
  const { host, port, database } = new pg.Client({ connectionString: url });
  return host.startsWith("/")
    ? `${host} (${database ?? "default database"})`
    : `${host}:${port}/${database ?? ""}`;
}
