/**
 * Finds the database, or the server before it: the URL given, else `PAWL_URL`, else `DATABASE_URL`, else a local Postgres in `.pawl/` when
 * `@pawl/local-postgres` is installed, which alone is migrated without being asked. In production a local one is
 * refused. Also checks that the schema is the one this release needs. Called by `connect`, `serve` and `migrate`.
 */

import { InvalidOption } from "../values/errors.js";
import type { GivenOptions } from "../values/options.js";
import { checkSchemaName } from "../worker/options.js";
import { checkServerUrl, isServerUrl, type ServerAddress } from "../store/http/address.js";
import { type Address, checkUrl, openPool } from "../store/postgres/database.js";
import { explain } from "../store/postgres/database-errors.js";
import {
  explainVersion,
  migrateSchema,
  readVersion,
  requireUtf8,
} from "../store/postgres/migrate.js";
import { schemaVersion } from "../store/postgres/schema-files.js";
import { Refused } from "../store/refused.js";

export interface Located {
  readonly url: string;
  readonly isLocal: boolean;
  close(): Promise<void>;
}

/** What `@pawl/local-postgres` exports, as far as it is used here. */
interface LocalPostgresModule {
  readonly startLocalPostgres: (options: {
    directory: string;
  }) => Promise<{ url: string; stop(): Promise<void> }>;
}

/** Where the runs are to be reached: at a server, or in a database (undefined: a local Postgres). */
export type Target =
  | ({ readonly kind: "server" } & ServerAddress)
  | { readonly kind: "database"; readonly url: string | undefined };

/**
 * What was given or is in the environment, checked. The token may come from there too, but only for a server. Opens nothing.
 */
export function givenTarget(url: unknown, token: unknown): Target {
  const [found, what] = foundUrl(url);
  if (isServerUrl(found)) {
    const shown = token ?? (process.env["PAWL_TOKEN"] || undefined);
    return { kind: "server", ...checkServerUrl(found, shown, what) };
  }
  if (token !== undefined) {
    throw new InvalidOption("token is for a server; a PostgreSQL URL has the user and password in itself");
  }
  return { kind: "database", url: found === undefined ? undefined : checkUrl(found, what) };
}

/** The URL of a database that was given or is in the environment, checked; undefined means a local Postgres. Opens nothing. */
export function givenUrl(url: unknown): string | undefined {
  const [found, what] = foundUrl(url);
  return found === undefined ? undefined : checkUrl(found, what);
}

/** The URL and, for messages, where it was found. */
function foundUrl(url: unknown): [url: unknown, what: string] {
  if (url !== undefined) return [url, "url"];
  for (const name of ["PAWL_URL", "DATABASE_URL"]) {
    if (process.env[name]) return [process.env[name], `the environment variable ${name}`];
  }
  if (process.env["NODE_ENV"] !== "production") return [undefined, "url"];
  throw new Refused("no database: pass a URL, or set PAWL_URL or DATABASE_URL (NODE_ENV is production)");
}

/** Opens the way to the database. */
export async function locate(url: string | undefined): Promise<Located> {
  if (url !== undefined) return { url, isLocal: false, close: async () => {} };
  const { startLocalPostgres } = await importLocalPostgres();
  try {
    const local = await startLocalPostgres({ directory: ".pawl/postgres" });
    return { url: local.url, isLocal: true, close: () => local.stop() };
  } catch (error) {
    throw new Refused(`the local Postgres cannot start: ${(error as Error).message}`, { cause: error });
  }
}

/** Finds the database of these options, does something with it, and lets go of it again. */
export async function atDatabase<T>(
  { url, schema }: GivenOptions<"url" | "schema">,
  use: (address: Address) => Promise<T>,
): Promise<T> {
  const name = checkSchemaName(schema);
  const database = await locate(givenUrl(url));
  try {
    return await use({ url: database.url, schema: name });
  } finally {
    await database.close();
  }
}

/** The same, with the schema that this release needs: made on a local Postgres, demanded of any other. */
export async function locateSchema(url: string | undefined, schema: string): Promise<Located> {
  const database = await locate(url);
  try {
    if (database.isLocal) await migrateSchema({ url: database.url, schema }, schemaVersion);
    await checkSchema(database.url, schema);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Throws unless the schema is there in the version that this release needs. */
async function checkSchema(url: string, schema: string): Promise<void> {
  const pool = openPool(url, 1);
  try {
    const found = await readVersion((text) => pool.query(text), schema);
    // Advice to migrate would lead to the next refusal.
    if (found.version === 0) await requireUtf8((text) => pool.query(text));
    const problem = explainVersion(found, schema);
    if (problem !== null) throw problem;
  } catch (error) {
    throw explain(error, { url, schema });
  } finally {
    await pool.end();
  }
}

async function importLocalPostgres(): Promise<LocalPostgresModule> {
  // Not a literal, so that neither the compiler nor a bundler follows an optional dependency.
  const name = "@pawl/local-postgres";
  try {
    return (await import(name)) as LocalPostgresModule;
  } catch (error) {
    throw new Refused(
      "no database: pass a URL, set PAWL_URL or DATABASE_URL, or install @pawl/local-postgres to get a local one",
      { cause: error },
    );
  }
}
