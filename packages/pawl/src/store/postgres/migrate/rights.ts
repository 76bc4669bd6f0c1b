/**
 * Says, before a migration writes anything, which right its role lacks and which statement grants
 * it. PostgreSQL would name the object, but not the right or the cure. A role that owns the schema
 * needs no right on the database. `migrateSchema` calls this file.
 */

import type pg from "pg";
import { Refused } from "../../errors.js";
import { quoteName } from "../literals.js";

/** The place of a migration, and the rights of its role there. */
export interface Standing {
  readonly role: string;
  readonly database: string;
  readonly hasSchema: boolean;
  readonly hasMigrations: boolean;
  readonly mayCreateSchema: boolean;
  readonly mayUseSchema: boolean;
  readonly mayCreateInSchema: boolean;
  readonly mayReadVersion: boolean;
  /** The owner of the tables; null if there are none yet. */
  readonly owner: string | null;
  /** Whether the role owns them, or may act as their owner. */
  readonly isOwner: boolean;
}

/** Queries only the catalog, which every role may read. */
export async function readStanding(client: pg.ClientBase, schema: string): Promise<Standing> {
  const { rows } = await client.query<Standing>(
    `select current_user::text as role, current_database()::text as database,
       n.oid is not null as "hasSchema", m.oid is not null as "hasMigrations",
       has_database_privilege(current_database(), 'create') as "mayCreateSchema",
       coalesce(has_schema_privilege(n.oid, 'usage'), false) as "mayUseSchema",
       coalesce(has_schema_privilege(n.oid, 'create'), false) as "mayCreateInSchema",
       coalesce(has_table_privilege(m.oid, 'select'), false) as "mayReadVersion",
       pg_get_userbyid(m.relowner)::text as owner, coalesce(pg_has_role(m.relowner, 'usage'), false) as "isOwner"
     from (select 1) one left join pg_namespace n on n.nspname = $1
       left join pg_class m on m.relnamespace = n.oid and m.relname = 'migrations' and m.relkind = 'r'`,
    [schema],
  );
  return rows[0]!;
}

/** Checks the rights to read the version: if the schema exists, it must be open to the role. */
export function requireReading(standing: Standing, schema: string): void {
  const { role, hasSchema, mayUseSchema, hasMigrations, mayReadVersion } = standing;
  const name = quoteName(schema);
  if (hasSchema && !mayUseSchema) {
    throw lacks(
      role,
      `usage on schema ${name}`,
      `grant usage, create on schema ${name} to ${quoteName(role)}`,
    );
  }
  if (hasMigrations && !mayReadVersion) {
    throw lacks(
      role,
      `select on table ${name}.migrations`,
      `grant select on table ${name}.migrations to ${quoteName(role)}`,
    );
  }
}

/**
 * Checks the rights for the first migration: to make a schema, or to make objects in an existing
 * one.
 */
export function requireCreating(standing: Standing, schema: string): void {
  const { role, database, hasSchema, mayCreateSchema, mayCreateInSchema } = standing;
  const name = quoteName(schema);
  if (!hasSchema && !mayCreateSchema) {
    throw lacks(
      role,
      `create on database ${quoteName(database)}, and there is no schema ${name} yet`,
      `create schema ${name} authorization ${quoteName(role)}`,
    );
  }
  if (hasSchema && !mayCreateInSchema) {
    throw lacks(
      role,
      `create on schema ${name}`,
      `grant usage, create on schema ${name} to ${quoteName(role)}`,
    );
  }
}

/** Checks the rights to change, remove or grant existing objects: only their owner may. */
export function requireOwning({ role, owner, isOwner }: Standing, schema: string): void {
  if (owner === null || isOwner) return;
  throw new Refused(
    `the role "${role}" does not own the tables of schema "${schema}"; the role "${owner}" does. Run this with the ` +
      `URL of "${owner}", or let an administrator run: grant ${quoteName(owner)} to ${quoteName(role)}`,
  );
}

function lacks(role: string, right: string, cure: string): Refused {
  return new Refused(
    `the role "${role}" lacks the right ${right}. Let the owner or an administrator run: ${cure}`,
  );
}
