/**
 * Finds the database: the URL given, else `PAWL_URL`, else `DATABASE_URL`, else a local Postgres in `.pawl/` when
 * `@pawl/local-postgres` is installed, which alone is migrated without being asked. In production a local one is
 * refused. Also checks that the schema is the one this release needs. Called by `connect`, `serve` and `migrate`.
 */

import { Unavailable } from "./define/errors.js";
import { checkUrl, explain, openPool } from "./store/postgres/database.js";
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

/** The URL that was given or is in the environment; checked, but nothing is opened. */
export function givenUrl(url: unknown): string | undefined {
  const found = url ?? (process.env["PAWL_URL"] || process.env["DATABASE_URL"] || undefined);
  return found === undefined ? undefined : checkUrl(found);
}

/** Opens the way to the database. */
export async function locate(url: string | undefined): Promise<Located> {
  if (url !== undefined) return { url, isLocal: false, close: async () => {} };
  if (process.env["NODE_ENV"] === "production") {
    throw new Unavailable(
      "no database: set PAWL_URL or DATABASE_URL, or pass a URL (NODE_ENV is production)",
    );
  }
  const { startLocalPostgres } = await importLocalPostgres();
  const local = await startLocalPostgres({ directory: ".pawl/postgres" });
  return { url: local.url, isLocal: true, close: () => local.stop() };
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
    throw new Unavailable(
      "no database: pass a URL, set PAWL_URL or DATABASE_URL, or install @pawl/local-postgres to get a local one",
      { cause: error },
    );
  }
}
