/**
 * Brings a schema to the version of this release. Applies the tables of each missing version, then
 * all functions and views, in one transaction. The transaction holds a transaction-level advisory
 * lock. So running it twice or from many processes at once is safe, and a failure leaves nothing
 * behind. It leaves a newer schema as it is. If a version in between is breaking, this release
 * refuses to work on the schema. Users, tests, and `connect` on the local Postgres call it.
 */

import type pg from "pg";
import { Unavailable } from "../../../values/errors.js";
import { applyFunctions, dropEverything, markObjects } from "./apply-schema.js";
import { type Address, openClient, type Opened, openPool, types } from "../database.js";
import { Refused } from "../../errors.js";
import { explain } from "../database-errors.js";
import type { MigrationResult } from "../../store.js";
import { grantedRoles, grantTo, requireRole } from "./grants.js";
import { quoteName } from "../literals.js";
import { readStanding, requireCreating, requireOwning, requireReading, type Standing } from "./rights.js";
import { isBreaking, readSchema, type Schema } from "./schema-files.js";
import { type FoundVersion, noSchema, readVersion, requireKnown, requireUtf8 } from "../version.js";

/**
 * Brings the schema up to the version of this release, or (`to` 0) removes it. `grant` names a role
 * that will use the schema without owning it. `given` is the schema of another release. Writes
 * nothing to a schema that has that version and the same functions.
 */
export async function migrateSchema(
  address: Address,
  to: number,
  grant?: string,
  given?: Schema,
): Promise<MigrationResult> {
  const schema = given ?? (await readSchema());
  let opened: Opened | undefined;
  try {
    opened = await openClient(address.url, { query_timeout: 0 });
    const { client } = opened;
    await requireUtf8((text) => client.query(text));
    await client.query("begin isolation level read committed");
    await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [
      `pawl migrate ${address.schema}`,
    ]);
    if (grant !== undefined) await requireRole(client, grant);
    const result = await moveTo(client, schema, { name: address.schema, to, grant });
    const { command } = await client.query("commit");
    // After an error in the transaction, COMMIT still resolves, but as a rollback.
    if (command !== "COMMIT") throw new Unavailable("the migration was rolled back by the server");
    return result;
  } catch (error) {
    throw explain(error, address);
  } finally {
    await opened?.end();
  }
}

/** Returns what `migrateSchema` would do. Writes nothing and takes no lock. */
export async function planSchema(address: Address, to: number, grant?: string): Promise<MigrationResult> {
  const { schema } = address;
  const schemaFiles = await readSchema();
  const { versions } = schemaFiles;
  const pool = openPool(address.url, 1);
  try {
    await requireUtf8((text) => pool.query(text));
    if (grant !== undefined) await requireRole(pool, grant);
    const found = await readVersion((text) => pool.query({ text, types }), schema);
    const from = found.version;
    const steps: string[] = [];
    if (to === 0) {
      if (from > 0) steps.push(`would remove schema "${schema}" with everything in it`);
    } else {
      requireKnown(found, schema);
      for (let version = from + 1; version <= to; version++) {
        const files = versions[version - 1]!.length;
        steps.push(`would apply version ${version} to schema "${schema}" (${files} files of tables)`);
      }
      if (from === to && !hasFunctions(found, schemaFiles)) {
        steps.push(`would replace the functions of schema "${schema}"`);
      }
    }
    if (grant !== undefined) steps.push(`would grant the role "${grant}" the use of schema "${schema}"`);
    return { schema, from, to: to === 0 ? 0 : Math.max(from, to), steps };
  } catch (error) {
    throw explain(error, address);
  } finally {
    await pool.end();
  }
}

interface Move {
  /** The name of the schema. */
  readonly name: string;
  readonly to: number;
  readonly grant: string | undefined;
}

async function moveTo(client: pg.ClientBase, schema: Schema, move: Move): Promise<MigrationResult> {
  const { name, to, grant } = move;
  const standing = await readStanding(client, name);
  requireReading(standing, name);
  await client.query(`set local search_path = ${quoteName(name)}, pg_catalog, pg_temp`);
  const found = standing.hasMigrations ? await readVersion((text) => client.query(text), name) : noSchema;
  if (to === 0) return remove(client, name, found.version, standing);

  requireKnown(found, name);
  const from = found.version;
  const isCurrent = from > to || (from === to && hasFunctions(found, schema));
  if (isCurrent && grant === undefined) return { schema: name, from, to: Math.max(from, to), steps: [] };
  if (to > from) requireCreating(standing, name);
  requireOwning(standing, name);

  const steps: string[] = [];
  if (!standing.hasSchema) await client.query(`create schema ${quoteName(name)}`);
  if (!standing.hasMigrations) await client.query(migrationsTable);
  for (let version = from + 1; version <= to; version++) {
    const files = schema.versions[version - 1]!;
    for (const { text } of files) await client.query(text);
    await client.query(
      "insert into migrations (version, made_schema, is_breaking, functions, revision) values ($1, $2, $3, $4, $5)",
      [version, !standing.hasSchema, isBreaking(files), schema.fingerprint, schema.revision],
    );
    steps.push(`applied version ${version} to schema "${name}"`);
  }
  if (!isCurrent) {
    await applyFunctions(client, schema, name);
    await client.query(firstSettings);
    await markObjects(client);
    if (from === to) {
      await client.query("update migrations set functions = $1, revision = $2 where version = $3", [
        schema.fingerprint,
        schema.revision,
        to,
      ]);
      steps.push(`replaced the functions of schema "${name}"`);
    }
  }
  steps.push(...(await grantAnew(client, schema, move)));
  return { schema: name, from, to: Math.max(from, to), steps };
}

const migrationsTable = `create table migrations (
  version     int         primary key,
  applied_at  timestamptz not null default clock_timestamp(),
  made_schema boolean     not null,
  is_breaking boolean     not null default false,
  functions   text,                                 -- the fingerprint of the functions that came with it
  revision    int         not null default 0        -- of those functions
)`;

/** Whether the schema has these functions, or those of a newer release with the same tables. */
function hasFunctions(found: FoundVersion, { fingerprint, revision }: Schema): boolean {
  return found.revision > revision || (found.revision === revision && found.fingerprint === fingerprint);
}

const firstSettings = `insert into settings (identity, home, beats_since, timeline)
  select gen_random_uuid(), location(), clock_timestamp(), timeline() where not exists (select 1 from settings)`;

/**
 * Removes everything of Pawl, with all runs. Keeps all objects that somebody else has put into the
 * schema.
 */
async function remove(
  client: pg.ClientBase,
  name: string,
  from: number,
  standing: Standing,
): Promise<MigrationResult> {
  if (!standing.hasMigrations) return { schema: name, from, to: 0, steps: [] };
  requireOwning(standing, name);
  await refuseWorkers(client, name);
  const { rows } = await client.query<{ made_schema: boolean }>(
    "select coalesce(bool_or(made_schema), false) as made_schema from migrations",
  );
  await dropEverything(client);
  await client.query("drop table if exists migrations");
  const { rowCount } = await client.query(
    "select from pg_depend where refobjid = to_regnamespace($1) limit 1",
    [quoteName(name)],
  );
  // The schema may be somebody else's, or hold their objects.
  if (rows[0]!.made_schema && rowCount === 0) {
    await client.query(`drop schema ${quoteName(name)} restrict`);
  }
  return { schema: name, from, to: 0, steps: [`removed Pawl from schema "${name}"`] };
}

/**
 * Grants the additions of this migration to the roles that were granted before. Reports only the
 * role that the caller asked for.
 */
async function grantAnew(client: pg.ClientBase, schema: Schema, { name, grant }: Move): Promise<string[]> {
  const before = await grantedRoles(client);
  for (const role of new Set([...before, ...(grant === undefined ? [] : [grant])])) {
    await grantTo(client, schema, name, role);
  }
  return grant === undefined ? [] : [`granted the role "${grant}" the use of schema "${name}"`];
}

/**
 * Workers must not use objects that the migration removes. Until this transaction ends, no worker
 * can register.
 */
async function refuseWorkers(client: pg.ClientBase, schema: string): Promise<void> {
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
