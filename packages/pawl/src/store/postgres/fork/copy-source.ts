/**
 * Reads the facts about a database before Pawl copies it, and checks whether it may. Pawl checks
 * first, so that a copy that cannot be made disturbs nobody.
 */

import type pg from "pg";
import { InvalidOption } from "../../../values/errors.js";
import { Refused } from "../../errors.js";
import { sqlState } from "../database-errors.js";

export interface Source {
  readonly oid: string;
  readonly name: string;
  readonly owner: string;
  readonly connectionLimit: number;
  /** Null: this role may not know. */
  readonly bytes: number | null;
  /** The version of the server, such as 180004. */
  readonly version: number;
  /** The server process of the connection that will make the copy. */
  readonly creatorPid: number;
}

interface Facts {
  readonly oid: string;
  readonly owner: string;
  readonly connection_limit: number;
  readonly bytes: string | null;
  readonly version: number;
  readonly pid: number;
  readonly role: string;
  readonly may_create: boolean;
  readonly may_copy: boolean;
  /** Null if no database has the new name; otherwise whether that database takes connections. */
  readonly taken_open: boolean | null;
  readonly prepared: number;
  /** Roles whose connections this role cannot end, as JSON. */
  readonly untouchable: string;
}

const question = `
  select d.oid, pg_get_userbyid(d.datdba) as owner, d.datconnlimit as connection_limit,
    case when has_database_privilege(d.oid, 'connect') then pg_database_size(d.oid)::text end as bytes,
    current_setting('server_version_num')::int as version, pg_backend_pid() as pid, r.rolname as role,
    r.rolsuper or r.rolcreatedb as may_create,
    r.rolsuper or pg_has_role(d.datdba, 'usage') as may_copy,
    (select t.datallowconn from pg_database t where t.datname = $2) as taken_open,
    (select count(*)::int from pg_prepared_xacts p where p.database = d.datname) as prepared,
    (select coalesce(json_agg(distinct u.rolname), '[]') from pg_stat_activity a join pg_roles u on u.oid = a.usesysid
      where a.datid = d.oid and not r.rolsuper and (u.rolsuper
        or not (pg_has_role(u.oid, 'usage') or pg_has_role('pg_signal_backend', 'usage')))) as untouchable
  from pg_database d, pg_roles r
  where d.datname = $1 and r.rolname = current_user`;

/** Throws if something prevents a copy, and says what to do about it. */
export async function examine(client: pg.Client, from: string, name: string): Promise<Source> {
  const { rows } = await client.query<Facts>(question, [from, name]);
  const [facts] = rows;
  if (facts === undefined) throw new Refused(`there is no database "${from}" on this server`);
  const { role, owner, prepared } = facts;
  if (facts.taken_open !== null) {
    const unfinished = facts.taken_open
      ? ""
      : ", which takes no connections: perhaps a copy that was interrupted";
    throw new InvalidOption(
      `there is a database "${name}" already${unfinished}. Choose another name, or drop it first: drop database "${name}"`,
    );
  }
  if (!facts.may_create) {
    throw new Refused(`the role "${role}" may not create databases: alter role "${role}" createdb`);
  }
  if (!facts.may_copy) {
    throw new Refused(
      `only its owner may copy the database "${from}", and that is the role "${owner}", not "${role}"; give a URL with that role, or grant "${owner}" to "${role}"`,
    );
  }
  const untouchable = JSON.parse(facts.untouchable) as string[];
  if (untouchable.length > 0) {
    throw new Refused(
      `connections of ${untouchable.map((one) => `"${one}"`).join(", ")} would have to end for the copy, and the role "${role}" cannot end them; ` +
        "end those connections, or give the URL of a role that can: a superuser, or (for roles that are none) a member of pg_signal_backend",
    );
  }
  if (prepared > 0) {
    throw new Refused(
      `the database "${from}" has ${prepared} prepared transactions (pg_prepared_xacts), and cannot be copied until they are committed or rolled back`,
    );
  }
  return {
    oid: facts.oid,
    name: from,
    owner,
    connectionLimit: facts.connection_limit,
    bytes: facts.bytes === null ? null : Number(facts.bytes),
    version: facts.version,
    creatorPid: facts.pid,
  };
}

/**
 * Whether a copy failed for a reason that another copy method does not change: the name, rights,
 * connections, or the end of its own connection.
 */
export function isInTheWay(error: unknown): boolean {
  if (error instanceof Refused) return true;
  const code = sqlState(error);
  return code === undefined || ["42P04", "42501"].includes(code) || code.startsWith("57");
}

/**
 * Explains the server's error when somebody stays connected for all of the 5 s that it waits.
 * Returns null for any other error.
 */
export function stillInUse(error: unknown, { name }: Source): Refused | null {
  if (sqlState(error) !== "55006") return null;
  const { detail = "" } = error as { detail?: string };
  return new Refused(
    `nothing was copied, because some connections to the database "${name}" did not end within 5 s (${detail}); it is as it was: ` +
      "see pg_stat_activity, end them, and try again",
    { cause: error },
  );
}
