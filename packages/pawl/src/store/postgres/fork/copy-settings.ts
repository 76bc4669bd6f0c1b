/**
 * Copies the grants and settings of a database, which `create database … template …` leaves out.
 * They say who may connect to it and make schemas in it, and how its sessions are set. The copy
 * gets them before it is opened.
 */

import type pg from "pg";
import type { Source } from "./copy-source.js";
import { quoteName } from "../literals.js";

/** Returns the settings that could not be copied, one line each. */
export async function copySettings(
  client: pg.Client,
  { oid }: Source,
  name: string,
): Promise<readonly string[]> {
  await copyGrants(client, oid, name);
  return copySessionSettings(client, oid, name);
}

async function copyGrants(client: pg.Client, oid: string, name: string): Promise<void> {
  const { rows } = await client.query<{ grantee: string | null; privilege: string; grantable: boolean }>(
    `select case when a.grantee <> 0 then pg_get_userbyid(a.grantee) end as grantee, lower(a.privilege_type) as privilege, a.is_grantable as grantable
    from pg_database d cross join lateral aclexplode(d.datacl) a where d.oid = $1`,
    [oid],
  );
  const { rowCount: changed } = await client.query(
    "select from pg_database where oid = $1 and datacl is not null",
    [oid],
  );
  // The grants are the ones that every new database has.
  if (changed === 0) return;
  const copy = quoteName(name);
  await client.query(`revoke all on database ${copy} from public`);
  for (const { grantee, privilege, grantable } of rows) {
    const to = grantee === null ? "public" : quoteName(grantee);
    await client.query(
      `grant ${privilege} on database ${copy} to ${to}${grantable ? " with grant option" : ""}`,
    );
  }
}

async function copySessionSettings(client: pg.Client, oid: string, name: string): Promise<string[]> {
  const { rows } = await client.query<{ role: string | null; setting: string; value: string }>(
    `select case when s.setrole <> 0 then pg_get_userbyid(s.setrole) end as role,
      split_part(c.entry, '=', 1) as setting, substr(c.entry, strpos(c.entry, '=') + 1) as value
    from pg_db_role_setting s cross join lateral unnest(s.setconfig) c(entry) where s.setdatabase = $1`,
    [oid],
  );
  const notes: string[] = [];
  for (const { role, setting, value } of rows) {
    const whose =
      role === null
        ? `database ${quoteName(name)}`
        : `role ${quoteName(role)} in database ${quoteName(name)}`;
    await client.query("begin");
    try {
      // This transaction sets the stored value, and `from current` takes it from there. Lists of
      // names need quotes that only the server knows.
      await client.query("select set_config($1, $2, true)", [setting, value]);
      await client.query(`alter ${whose} set ${setting.split(".").map(quoteName).join(".")} from current`);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      notes.push(`the setting ${setting} of ${whose} was not copied: ${(error as Error).message}`);
    }
  }
  return notes;
}
