/**
 * The PostgreSQL server for the databases of tests: the one of a URL, or a local one. All processes
 * of this working directory share the local one, and it ends with the last of them. The first
 * process makes a migrated database as the template to copy. Used by `private-database.ts`.
 */

import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "../store/driver/driver.js";
import { type Connections, connectionOptions, openPool } from "../store/postgres/database.js";
import { explain } from "../store/postgres/database-errors.js";
import { quoteName } from "../store/postgres/literals.js";
import { migrateSchema } from "../store/postgres/migrate/migrate.js";
import { readSchema } from "../store/postgres/migrate/schema-files.js";
import { schemaVersion } from "../store/postgres/version.js";
import { Refused } from "../store/errors.js";
import { clockSql } from "./test-clock.js";

/** The schema of Pawl in every database of a test. */
export const schema = "pawl";

/** The prefix of the names of databases. */
const prefix = "pawl_test_";
/** A database of this age without connections is left over: its test would be connected. */
const leftOverMs = 60_000;
const maxLeftOver = 50;

export interface TestServer {
  /** Creates and drops databases. */
  readonly admin: Connections;
  /** The name of the database to copy. */
  readonly template: string;
  /** The URL of a database of this server. */
  urlOf(database: string): string;
}

/** The part of `@pawl/local-postgres` that is used here. */
interface LocalPostgresModule {
  readonly startLocalPostgres: (options: {
    directory: string;
    settings: Record<string, string | number>;
  }) => Promise<{ url: string }>;
}

/** A test need not survive a power failure. */
const settings = { max_connections: 300, fsync: "off", full_page_writes: "off", synchronous_commit: "off" };
const local = "";
const servers = new Map<string, Promise<TestServer>>();

/** The server of this URL, or the local one for undefined. All tests of this process share it. */
export function testServer(url: string | undefined): Promise<TestServer> {
  const key = url ?? local;
  let server = servers.get(key);
  if (server === undefined) {
    server = prepare(url).catch((error: unknown) => {
      servers.delete(key);
      throw error;
    });
    servers.set(key, server);
  }
  return server;
}

/** Forgets a server that has ended, so that the next call starts or connects again. */
export function forgetServer(url: string | undefined): void {
  servers.delete(url ?? local);
}

async function prepare(url: string | undefined): Promise<TestServer> {
  // Never stopped: the local server notices when this process ends.
  const address = url ?? (await startLocal());
  const admin = openPool(address, 2);
  const template = `pawl_template_${await fingerprint()}`;
  const urlOf = (database: string): string => {
    const found = new URL(address);
    found.pathname = `/${database}`;
    return found.href;
  };
  const turn = new pg.Client({ ...connectionOptions(address), query_timeout: 0 });
  turn.on("error", () => {});
  try {
    await turn.connect();
    // One process at a time. The lock needs its own connection: `create database` runs outside of
    // transactions.
    await turn.query("begin");
    await turn.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [template]);
    await makeTemplate(admin, template, urlOf);
    await dropLeftOver(admin);
  } catch (error) {
    await admin.end();
    throw explain(error, { url: address, schema });
  } finally {
    await turn.end().catch(() => {});
  }
  return { admin, template, urlOf };
}

async function startLocal(): Promise<string> {
  // Not a literal, and ignored by bundlers: an optional dependency that starts programs of its own.
  const name = "@pawl/local-postgres";
  let module: LocalPostgresModule;
  try {
    module = (await import(
      /* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ name
    )) as LocalPostgresModule;
  } catch (error) {
    throw new Refused(
      "testPawl found no Postgres; run npm install --save-dev @pawl/local-postgres, or pass the url of a server where it may " +
        'create databases, such as testPawl({ url: "postgres://localhost:5432/postgres" })',
      { cause: error },
    );
  }
  const owner = process.getuid?.() ?? "";
  const place = createHash("sha256").update(process.cwd()).digest("hex").slice(0, 12);
  const directory = join(tmpdir(), `pawl-tests-${owner}-${place}`);
  try {
    return (await module.startLocalPostgres({ directory, settings })).url;
  } catch (error) {
    throw new Refused(
      `the local Postgres for tests did not start: ${(error as Error).message}. You may delete its data directory, ${directory}, at any time`,
      { cause: error },
    );
  }
}

/** A hash of everything that the template is made from, so that a change makes a new template. */
async function fingerprint(): Promise<string> {
  const { versions, fingerprint: functions } = await readSchema();
  const hash = createHash("sha256").update(clockSql).update(functions);
  for (const { text } of versions.flat()) hash.update(text);
  return hash.digest("hex").slice(0, 16);
}

/** Makes the template unless it exists. It has a draft name until it is complete. */
async function makeTemplate(
  admin: Connections,
  template: string,
  urlOf: (database: string) => string,
): Promise<void> {
  const { rowCount } = await admin.query("select from pg_database where datname = $1", [template]);
  if (rowCount !== 0) return;
  const draft = `${template}_draft`;
  await admin.query(`drop database if exists ${quoteName(draft)} with (force)`);
  await admin.query(`create database ${quoteName(draft)}`);
  await migrateSchema({ url: urlOf(draft), schema }, schemaVersion);
  const inside = new pg.Client(connectionOptions(urlOf(draft)));
  await inside.connect();
  try {
    await inside.query(clockSql);
  } finally {
    await inside.end();
  }
  await admin.query(`alter database ${quoteName(draft)} rename to ${quoteName(template)}`);
}

/** Drops the databases of killed tests. A running test is always connected to its own. */
async function dropLeftOver(admin: Connections): Promise<void> {
  const { rows } = await admin.query<{ name: string }>(
    `select d.datname as name from pg_database d where starts_with(d.datname, $1)
       and not exists (select from pg_stat_activity a where a.datid = d.oid) order by d.datname limit $2`,
    [prefix, maxLeftOver],
  );
  for (const { name } of rows) {
    if (Date.now() - bornAtMs(name) < leftOverMs) continue;
    // Another process may have dropped it or connected to it.
    await admin.query(`drop database if exists ${quoteName(name)}`).catch(() => {});
  }
}

/** The name of a new database. It contains the creation time. */
export function databaseName(random: string): string {
  return `${prefix}${Date.now().toString(36)}_${random}`;
}

function bornAtMs(name: string): number {
  return Number.parseInt(name.slice(prefix.length), 36) || 0;
}
