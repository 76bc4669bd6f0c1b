/**
 * Applies the functions and views of a schema, and removes a schema. Every object of Pawl carries a
 * comment, so both leave alone all objects that somebody else has put into the same schema. The
 * caller has begun a transaction as the owner, with the schema as search_path. `migrate` calls this
 * file.
 */

import type pg from "pg";
import { Refused } from "../../errors.js";
import { quoteLiteral, quoteName } from "../literals.js";
import { functionFiles, type Schema, type SchemaFile } from "./schema-files.js";

const comment = "Part of Pawl. Only its migrate changes this.";

/**
 * These settings keep plans that were cached on an empty table right at a million rows, and keep
 * JIT off. Only the functions that are called from outside carry them. Inner functions inherit them
 * from their caller, because a SET clause costs 2 µs a call.
 */
const planner = [
  "enable_seqscan = off",
  "enable_hashjoin = off",
  "enable_mergejoin = off",
  "enable_bitmapscan = off",
  "enable_sort = off",
  "enable_material = off",
  "plan_cache_mode = force_generic_plan",
];

/** Replaces all functions and views, and gives the functions their settings. */
export async function applyFunctions(client: pg.ClientBase, schema: Schema, name: string): Promise<void> {
  // Functions may call each other in any order.
  await client.query("set local check_function_bodies = off");
  const { rows: before } = await client.query<{ oid: string }>(
    `select p.oid::text as oid from pg_proc p where p.pronamespace = quote_ident(current_schema())::regnamespace
       and obj_description(p.oid, 'pg_proc') is distinct from ${quoteLiteral(comment)}`,
  );
  const foreign = new Set(before.map(({ oid }) => oid));
  for (const { text } of [...schema.functions, ...schema.views]) await client.query(text);
  const { rows } = await client.query<{ oid: string; signature: string; name: string }>(
    `select p.oid::text as oid, p.oid::regprocedure as signature, p.proname as name from pg_proc p
     where p.pronamespace = quote_ident(current_schema())::regnamespace and p.xmin = pg_current_xact_id()::xid`,
  );
  const replaced = rows.find(({ oid }) => foreign.has(oid));
  if (replaced !== undefined) {
    throw new Refused(
      `the schema "${name}" has a function ${replaced.signature} that is not Pawl's, and Pawl needs one of that name; ` +
        `rename yours, or give Pawl a schema of its own`,
    );
  }
  const files = functionFiles(schema);
  const changes = rows.map(({ signature, name: called }) => {
    const settings = settingsOf(files.get(called)!, name).map((setting) => ` set ${setting}`);
    const alter = settings.length === 0 ? "" : `alter function ${signature}${settings.join("")};`;
    return `${alter}comment on function ${signature} is ${quoteLiteral(comment)}`;
  });
  await client.query(changes.join(";"));
}

function settingsOf({ kind, notes }: SchemaFile, schema: string): string[] {
  if (kind === "inner") return [];
  const isPlannedAnew = notes.includes("custom plans");
  const lockTimeout = notes.find((note) => note.startsWith("lock_timeout "))?.split(" ")[1];
  return [
    // Set by value. The schema comes first, so that no other object of the same name is found;
    // pg_temp comes last.
    `search_path = ${quoteName(schema)}, pg_catalog, pg_temp`,
    "jit = off",
    ...(isPlannedAnew ? ["plan_cache_mode = force_custom_plan"] : planner),
    ...(lockTimeout === undefined ? [] : [`lock_timeout = ${quoteLiteral(lockTimeout)}`]),
  ];
}

/** Marks the tables, views, types and sequences that this transaction has made. */
export async function markObjects(client: pg.ClientBase): Promise<void> {
  await forEachObject(
    client,
    `select format('comment on %s is %L', o.named, ${quoteLiteral(comment)}) as statement from (${objects}) o
     where o.made_by = pg_current_xact_id()::xid`,
  );
}

/** Drops every object that carries the comment: views, functions, tables, sequences, types. */
export async function dropEverything(client: pg.ClientBase): Promise<void> {
  await forEachObject(
    client,
    `select format('drop %s', o.named) as statement from (
       ${objects}
       union all
       select 2, 'function ' || p.oid::regprocedure, p.xmin, obj_description(p.oid, 'pg_proc')
       from pg_proc p where p.pronamespace = quote_ident(current_schema())::regnamespace) o
     where o.comment = ${quoteLiteral(comment)} order by o.place, o.named`,
  );
}

/** Selects the relations and types of the schema, in the order in which they can be dropped. */
const objects = `
  select case c.relkind when 'v' then 1 when 'r' then 3 else 4 end as place,
    case c.relkind when 'v' then 'view ' when 'r' then 'table ' else 'sequence ' end || c.oid::regclass as named,
    c.xmin as made_by, obj_description(c.oid, 'pg_class') as comment
  from pg_class c
  where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind in ('r', 'v', 'S')
    and not exists (select 1 from pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i'))
  union all
  select 5, 'type ' || t.oid::regtype, t.xmin, obj_description(t.oid, 'pg_type')
  from pg_type t left join pg_class c on c.oid = t.typrelid
  where t.typnamespace = quote_ident(current_schema())::regnamespace and (t.typtype = 'e' or c.relkind = 'c')`;

async function forEachObject(client: pg.ClientBase, query: string): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(query);
  if (rows.length > 0) await client.query(rows.map(({ statement }) => statement).join(";"));
}
