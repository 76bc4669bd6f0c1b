/**
 * Says, before a migration writes anything, which right its role lacks and the statement that gives it: PostgreSQL
 * would name the object, and neither the right nor the cure. A role that owns the schema needs no right on the
 * database. Called by `migrateSchema`.
 */

import type pg from "pg";
import { Refused } from "../../errors.js";
import { quoteName } from "../literals.js";

/** The place of a migration, and what its role may do there. */
export interface Standing {
  readonly role: string;
  readonly database: string;
  readonly hasSchema: boolean;
  readonly hasMigrations: boolean;
  readonly mayCreateSchema: boolean;
  readonly mayUseSchema: boolean;
  readonly mayCreateInSchema: boolean;
  readonly mayReadVersion: boolean;
  /** Of the tables; null if there are none yet. */
  readonly owner: string | null;
  /** Whether the role owns them, or may act as their owner. */
  readonly isOwner: boolean;
}

/** Asks the catalog alone, which every role may read. */
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

/** For reading the version: a schema that is there must be open to the role. */
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

/** For the first migration: a schema to be made, or one in which objects can be made. */
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

/** For whatever changes, takes away or grants what is there: only its owner may. */
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
