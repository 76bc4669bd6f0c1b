/**
 * Finds the database or server: the given URL, else `PAWL_URL`, else `DATABASE_URL`, else a local
 * Postgres in `.pawl/` if `@pawl/local-postgres` is installed. Only that local Postgres is migrated
 * automatically, and production refuses it. Also checks that the schema has the version of this
 * release. Called by `connect`, `serve`, `migrate` and the server.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { InvalidOption } from "../values/errors.js";
import { type GivenOptions, isObject } from "../values/options.js";
import { checkConnection, isPool } from "../store/driver/source.js";
import type { DatabaseSource } from "../store/driver/source-types.js";
import { checkSchemaName } from "../worker/options.js";
import { checkServerUrl, isServerUrl, type ServerAddress } from "../store/http/address.js";
import { type Address, checkUrl, openPool } from "../store/postgres/database.js";
import { explain } from "../store/postgres/database-errors.js";
import { migrateSchema } from "../store/postgres/migrate/migrate.js";
import { explainVersion, readVersion, requireUtf8, schemaVersion } from "../store/postgres/version.js";
import { Refused } from "../store/errors.js";

export interface Located<Source extends DatabaseSource = string> {
  readonly url: Source;
  readonly isLocal: boolean;
  close(): Promise<void>;
}

/** The part of `@pawl/local-postgres` that is used here. */
interface LocalPostgresModule {
  readonly startLocalPostgres: (options: {
    directory: string;
    port?: number;
  }) => Promise<{ url: string; stop(): Promise<void> }>;
}

/** A server, or a database (undefined: a local Postgres). */
export type Target =
  | ({ readonly kind: "server" } & ServerAddress)
  | { readonly kind: "database"; readonly url: DatabaseSource | undefined };

/**
 * The given URL, or the one of the environment, checked. A token is only for a server. Opens
 * nothing.
 */
export function givenTarget(url: unknown, token: unknown): Target {
  const [found, what] = foundUrl(url);
  if (isServerUrl(found)) {
    const shown = token ?? (process.env["PAWL_TOKEN"] || undefined);
    return { kind: "server", ...checkServerUrl(found, shown, what) };
  }
  if (token !== undefined) {
    throw new InvalidOption(
      "token is for a server; put the user and password into the PostgreSQL URL instead",
    );
  }
  return { kind: "database", url: found === undefined ? undefined : checkSource(found, what) };
}

/**
 * The given database, or the one of the environment, checked; undefined: a local Postgres. Opens
 * nothing.
 */
export function givenSource(url: unknown): DatabaseSource | undefined {
  const [found, what] = foundUrl(url);
  return found === undefined ? undefined : checkSource(found, what);
}

function checkSource(given: unknown, what: string): DatabaseSource {
  if (isPool(given)) return given;
  return isObject(given) ? checkConnection(given, what) : checkUrl(given, what);
}

/**
 * The given database URL, or the one of the environment, checked; undefined: a local Postgres.
 * Opens nothing.
 */
export function givenUrl(url: unknown): string | undefined {
  const [found, what] = foundUrl(url);
  return found === undefined ? undefined : checkUrl(found, what);
}

/** The URL, and its source for error messages. */
function foundUrl(url: unknown): [url: unknown, what: string] {
  if (url !== undefined) return [url, "url"];
  for (const name of ["PAWL_URL", "DATABASE_URL"]) {
    if (process.env[name]) return [process.env[name], `the environment variable ${name}`];
  }
  if (process.env["NODE_ENV"] !== "production") return [undefined, "url"];
  throw new Refused("no database: pass a URL, or set PAWL_URL or DATABASE_URL (NODE_ENV is production)");
}

/**
 * Where the database is. Starts a local Postgres if there is none; `port`: also on this port of
 * 127.0.0.1.
 */
export async function locate<Source extends DatabaseSource>(
  url: Source | undefined,
  port?: number,
): Promise<Located<Source | string>> {
  if (url !== undefined) return { url, isLocal: false, close: async () => {} };
  const { startLocalPostgres } = await importLocalPostgres();
  try {
    makeLocalFolder();
    const directory = `${localFolder}/postgres`;
    const local = await startLocalPostgres({ directory, ...(port === undefined ? {} : { port }) });
    return { url: local.url, isLocal: true, close: () => local.stop() };
  } catch (error) {
    throw new Refused(`the local Postgres cannot start: ${(error as Error).message}`, { cause: error });
  }
}

const localFolder = ".pawl";

/** A new folder ignores itself, so that nobody commits a database to git. */
function makeLocalFolder(): void {
  const made = mkdirSync(localFolder, { recursive: true });
  if (made !== undefined) writeFileSync(`${localFolder}/.gitignore`, "*\n");
}

/** Finds the database of these options, calls `use`, and closes it again. */
export async function atDatabase<T>(
  { url, schema }: GivenOptions<"url" | "schema">,
  use: (address: Address & { readonly url: string }) => Promise<T>,
): Promise<T> {
  const name = checkSchemaName(schema);
  const database = await locate(givenUrl(url));
  try {
    return await use({ url: database.url, schema: name });
  } finally {
    await database.close();
  }
}

/**
 * Like `locate`, and migrates the schema of a local Postgres, or checks the version of any other.
 */
export async function locateSchema<Source extends DatabaseSource>(
  url: Source | undefined,
  schema: string,
): Promise<Located<Source | string>> {
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

/** Throws unless the schema has the version that this release needs. */
async function checkSchema(url: DatabaseSource, schema: string): Promise<void> {
  const pool = openPool(url, 1);
  try {
    const found = await readVersion((text) => pool.query(text), schema);
    // Without UTF-8 the advice to migrate would only lead to the next error.
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
  // Not a literal, and ignored by bundlers: an optional dependency that starts programs of its own.
  const name = "@pawl/local-postgres";
  try {
    return (await import(
      /* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ name
    )) as LocalPostgresModule;
  } catch (error) {
    throw new Refused(
      "no database: pass a URL, set PAWL_URL or DATABASE_URL, or install @pawl/local-postgres to get a local one",
      { cause: error },
    );
  }
}
