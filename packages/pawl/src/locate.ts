/**
 * Finds the database: the URL given, else `PAWL_URL`, else `DATABASE_URL`, else a local Postgres in `.pawl/` when
 * `@pawl/local-postgres` is installed, which alone is migrated without being asked. In production a local one is
 * refused. Also checks that the schema is the one this release needs. Called by `connect`, `serve` and `migrate`.
 */

import type { GivenOptions } from "./define/options.js";
import { checkSchemaName } from "./engine/serve-options.js";
import { type Address, checkUrl, openPool } from "./store/postgres/database.js";
import { explain, Refused } from "./store/postgres/database-errors.js";
import { explainVersion, migrateSchema, readVersion, schemaVersion } from "./store/postgres/migrate.js";

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

/** The URL that was given or is in the environment, checked; undefined means a local Postgres. Opens nothing. */
export function givenUrl(url: unknown): string | undefined {
  if (url !== undefined) return checkUrl(url);
  for (const name of ["PAWL_URL", "DATABASE_URL"]) {
    if (process.env[name]) return checkUrl(process.env[name], `the environment variable ${name}`);
  }
  if (process.env["NODE_ENV"] !== "production") return undefined;
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
