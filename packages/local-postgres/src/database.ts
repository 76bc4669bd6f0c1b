/**
 * The statements that the launcher itself runs on a server: which databases there are, and whether
 * it may write.
 */
import type { Postmaster } from "./postmaster.js";
import { queryOverSocket, quoteIdentifier, quoteLiteral } from "./wire-query.js";

export async function isStandby(postmaster: Postmaster): Promise<boolean> {
  const rows = await queryOverSocket(postmaster.socketPath, "postgres", "select pg_is_in_recovery()");
  return rows[0]?.[0] === "t";
}

/** A standby has the databases of its primary and takes no statement that writes. */
export async function createDatabase(postmaster: Postmaster, database: string): Promise<void> {
  const { socketPath } = postmaster;
  const lookup = `select 1 from pg_database where datname = ${quoteLiteral(database)}`;
  const rows = await queryOverSocket(socketPath, "postgres", lookup);
  if (rows.length > 0 || (await isStandby(postmaster))) return;
  await queryOverSocket(socketPath, "postgres", `create database ${quoteIdentifier(database)}`);
}
