/**
 * The rights of a role that uses the schema and owns nothing. It may call the functions, which run
 * with the rights of their caller, and read and write the tables as they do. It cannot change the
 * schema, grant anything, or touch other tables of the same schema. Only PostgreSQL's own access
 * lists record the granted roles. Each later migration grants its additions to every role that may
 * register workers. `migrateSchema` calls this file.
 */

import type pg from "pg";
import { InvalidOption } from "../../../values/errors.js";
import { show } from "../../../values/show.js";
import { quoteName } from "../literals.js";
import { type Schema, tableRights } from "./schema-files.js";

/** Throws unless a role of exactly this name exists. Call it before you write anything. */
export async function requireRole(client: Pick<pg.ClientBase, "query">, role: string): Promise<void> {
  const { rows } = await client.query<{ rolname: string }>(
    "select rolname from pg_roles where lower(rolname) = lower($1) order by rolname <> $1 limit 1",
    [role],
  );
  const [found] = rows;
  if (found?.rolname === role) return;
  const near = found === undefined ? "" : `; there is one called ${show(found.rolname)}`;
  throw new InvalidOption(
    `grant must name a role of this database server, and ${show(role)} is none${near}. Names are case-sensitive; ` +
      `create the role first: create role ${quoteName(role)} login`,
  );
}

/**
 * Returns the roles that Pawl, or somebody by hand, granted before: those that may register
 * workers. The owner needs no grant.
 */
export async function grantedRoles(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ role: string }>(
    `select distinct pg_get_userbyid(a.grantee) as role
     from pg_class c, lateral aclexplode(c.relacl) a
     where c.oid = 'workers'::regclass and a.privilege_type = 'INSERT' and a.grantee not in (0, c.relowner)
     order by role`,
  );
  return rows.map(({ role }) => role);
}

/**
 * Requires the schema as the search_path, and a `client` that acts as its owner. Granting again
 * changes nothing.
 */
export async function grantTo(
  client: pg.ClientBase,
  files: Schema,
  schema: string,
  role: string,
): Promise<void> {
  const to = `to ${quoteName(role)}`;
  await client.query(`grant usage on schema ${quoteName(schema)} ${to}`);
  for (const [table, rights] of tableRights(files)) {
    await client.query(`grant ${rights} on table ${quoteName(schema)}.${quoteName(table)} ${to}`);
  }
  await client.query(`grant usage on sequence ${quoteName(schema)}.run_ids ${to}`);
  // Everybody may execute functions, unless the default was revoked. Functions of other people in
  // the schema stay as they are.
  const { rows } = await client.query<{ functions: string }>(
    `select string_agg(format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), ', ') as functions
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_class c on c.oid = 'runs'::regclass
     where p.pronamespace = c.relnamespace and p.proowner = c.relowner and p.prokind = 'f'`,
  );
  await client.query(`grant execute on function ${rows[0]!.functions} ${to}`);
}
