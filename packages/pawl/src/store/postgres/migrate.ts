/**
 * Brings a schema to a version. Each version is a directory of plain SQL files (`migrations/0001/*.sql`, which psql
 * can run with the schema as search_path), applied whole, in one transaction, under a transaction-level advisory
 * lock: running it twice or from many processes at once is safe, and a failure leaves nothing behind. A schema that
 * is newer than this release is refused. Called by users, by tests, and by `connect` on the local Postgres.
 */

import { readdir, readFile } from "node:fs/promises";
import pg from "pg";
import { Unavailable } from "../../values/errors.js";
import { type Address, connectionOptions, openPool, types } from "./database.js";
import { Refused } from "../refused.js";
import { explain, migrateCall, sqlState } from "./database-errors.js";
import type { MigrationResult } from "../store.js";
import { grantedRoles, grantTo, requireRole } from "./grants.js";
import { quoteName } from "./literals.js";
import {
  readStanding,
  requireCreating,
  requireOwning,
  requireReading,
  type Standing,
} from "./migration-rights.js";

// The same from src/ and dist/, so that no build step has to copy the files.
const directory = new URL("../../../src/store/postgres/migrations/", import.meta.url);

/** The version that this release of Pawl works with. */
export const schemaVersion = 1;

/**
 * Takes the schema up, or down, to version `to` (0: nothing left). `grant`: a role that is to use it without owning it.
 * A schema that is there already, in that version, is not written to.
 */
export async function migrateSchema(address: Address, to: number, grant?: string): Promise<MigrationResult> {
  const client = new pg.Client({ ...connectionOptions(address.url), query_timeout: 0 });
  // Without a listener a connection lost between two statements would end the process; the statement after it fails.
  client.on("error", () => {});
  try {
    await client.connect();
    await requireUtf8((text) => client.query(text));
    await client.query("begin isolation level read committed");
    await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [
      `pawl migrate ${address.schema}`,
    ]);
    if (grant !== undefined) await requireRole(client, grant);
    const steps = await moveTo(client, address.schema, to, grant);
    const { command } = await client.query("commit");
    // After an error in the transaction COMMIT resolves all the same, as a rollback.
    if (command !== "COMMIT") throw new Unavailable("the migration was rolled back by the server");
    return steps;
  } catch (error) {
    throw explain(error, address);
  } finally {
    await client.end().catch(() => {});
  }
}

/** What `migrateSchema` would do; writes nothing, and takes no lock. */
export async function planSchema(address: Address, to: number, grant?: string): Promise<MigrationResult> {
  const { schema } = address;
  const pool = openPool(address.url, 1);
  try {
    await requireUtf8((text) => pool.query(text));
    if (grant !== undefined) await requireRole(pool, grant);
    const from = await readVersion((text) => pool.query({ text, types }), schema);
    if (from > schemaVersion) throw newer(from, schema);
    const steps: string[] = [];
    for (let version = from + 1; version <= to; version++) {
      const files = await migrationFiles(version);
      steps.push(`would apply version ${version} to schema "${schema}" (${files.length} files)`);
    }
    for (let version = from; version > to; version--) {
      steps.push(`would take version ${version} away from schema "${schema}"`);
    }
    if (grant !== undefined) steps.push(`would grant the role "${grant}" the use of schema "${schema}"`);
    return { schema, from, to, steps };
  } catch (error) {
    throw explain(error, address);
  } finally {
    await pool.end();
  }
}

/** The version of the schema in this database; 0 if there is none. */
export async function readVersion(
  query: (text: string) => Promise<{ rows: { version: number }[] }>,
  schema: string,
): Promise<number> {
  try {
    const { rows } = await query(`select max(version)::int4 as version from ${quoteName(schema)}.migrations`);
    return rows[0]?.version ?? 0;
  } catch (error) {
    if (["42P01", "3F000"].includes(sqlState(error) ?? "")) return 0;
    throw error;
  }
}

/** Throws unless the database keeps text in UTF8: in any other encoding it could not store every JSON value. */
export async function requireUtf8(query: (text: string) => Promise<{ rows: unknown[] }>): Promise<void> {
  const { rows } = await query("select current_setting('server_encoding') as encoding");
  const { encoding } = rows[0] as { encoding: string };
  if (encoding === "UTF8") return;
  throw new Refused(
    `Pawl needs a database with encoding UTF8, and this one has ${encoding}. Create another one with ` +
      `create database … encoding 'UTF8' template template0, and use its URL`,
  );
}

/** What to do when the schema found is not the one this release needs; null if it is. */
export function explainVersion(found: number, schema: string): Refused | null {
  if (found === schemaVersion) return null;
  const call = migrateCall(schema);
  if (found > schemaVersion) return newer(found, schema);
  return found === 0
    ? new Refused(`the database has no schema "${schema}" of Pawl yet; run ${call} once`)
    : new Refused(
        `the schema "${schema}" is at version ${found}, this release needs ${schemaVersion}; run ${call}`,
      );
}

function newer(found: number, schema: string): Refused {
  return new Refused(
    `the schema "${schema}" is at version ${found}, newer than this release of Pawl knows (${schemaVersion}); upgrade the pawl package`,
  );
}

async function moveTo(
  client: pg.Client,
  schema: string,
  to: number,
  grant: string | undefined,
): Promise<MigrationResult> {
  const name = quoteName(schema);
  const standing = await readStanding(client, schema);
  requireReading(standing, schema);
  await client.query(`set local search_path = ${name}, pg_catalog, pg_temp`);
  const from = standing.hasMigrations ? await appliedVersion(client) : 0;
  if (from > schemaVersion) throw newer(from, schema);
  if (from === to && grant === undefined && (to > 0 || !standing.hasMigrations)) {
    return { schema, from, to, steps: [] };
  }
  await prepare(client, schema, from, to, standing);

  const steps: string[] = [];
  let madeSchema = !standing.hasSchema;
  for (let version = from + 1; version <= to; version++) {
    for (const file of await migrationFiles(version)) await client.query(await readFile(file, "utf8"));
    await client.query("insert into migrations (version, made_schema) values ($1, $2)", [
      version,
      madeSchema,
    ]);
    steps.push(`applied version ${version} to schema "${schema}"`);
  }
  if (from > to) await refuseWorkers(client, schema);
  for (let version = from; version > to; version--) {
    await client.query(await readFile(new URL(`${pad(version)}.down.sql`, directory), "utf8"));
    const { rows: gone } = await client.query(
      "delete from migrations where version = $1 returning made_schema",
      [version],
    );
    madeSchema ||= (gone as { made_schema: boolean }[])[0]!.made_schema;
    steps.push(`took version ${version} away from schema "${schema}"`);
  }
  if (to === 0) {
    await client.query("drop table migrations");
    const { rowCount } = await client.query(
      "select from pg_depend where refobjid = to_regnamespace($1) limit 1",
      [name],
    );
    // It may be somebody else's, or hold their objects.
    if (madeSchema && rowCount === 0) await client.query(`drop schema ${name} restrict`);
  } else {
    steps.push(...(await grantAnew(client, schema, grant)));
  }
  return { schema, from, to: Math.max(to, 0), steps };
}

/** Checks the rights that the way from one version to the other takes, and makes what every version needs. */
async function prepare(
  client: pg.Client,
  schema: string,
  from: number,
  to: number,
  standing: Standing,
): Promise<void> {
  if (to > from) requireCreating(standing, schema);
  requireOwning(standing, schema);
  if (!standing.hasSchema) await client.query(`create schema ${quoteName(schema)}`);
  if (standing.hasMigrations) return;
  await client.query(
    `create table migrations (
      version int primary key, applied_at timestamptz not null default clock_timestamp(), made_schema boolean not null)`,
  );
}

async function appliedVersion(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ version: number }>(
    "select coalesce(max(version), 0) as version from migrations",
  );
  return rows[0]!.version;
}

/** Roles that were granted before get what this migration has added; tells only of the one that was asked for. */
async function grantAnew(client: pg.Client, schema: string, grant: string | undefined): Promise<string[]> {
  const before = await grantedRoles(client);
  for (const role of new Set([...before, ...(grant === undefined ? [] : [grant])])) {
    await grantTo(client, schema, role);
  }
  return grant === undefined ? [] : [`granted the role "${grant}" the use of schema "${schema}"`];
}

/** What is taken away must not be in use. Until this transaction ends no worker can register either. */
async function refuseWorkers(client: pg.Client, schema: string): Promise<void> {
  await client.query("lock table workers in access exclusive mode");
  const { rows } = await client.query<{ id: string }>(
    "select id from workers where seen_at + lease > clock_timestamp() order by id limit 5",
  );
  if (rows.length === 0) return;
  const ids = rows.map(({ id }) => id).join(", ");
  throw new Refused(
    `the schema "${schema}" is in use: stop its workers first (${ids}). One that was killed counts until its lease has passed`,
  );
}

/** The SQL of one version, in the order in which it is applied. */
export async function migrationFiles(version: number): Promise<URL[]> {
  const folder = new URL(`${pad(version)}/`, directory);
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).toSorted();
  return names.map((name) => new URL(name, folder));
}

const pad = (version: number): string => String(version).padStart(4, "0");
