/**
 * Detects a pooler in front of the database, and how it shares connections. A pooler reports
 * another process id than the server does. A pooler in transaction mode gives one client's
 * connection to the next between two statements. `pawl doctor` calls this file. Pawl also calls it
 * before it copies a database, and before it prepares statements and limits their time.
 */

import type pg from "pg";
import type { Pooling } from "../health.js";
import { type Address, openClient, type Opened, types } from "./database.js";
import { explain } from "./database-errors.js";

export async function findPooling(address: Address): Promise<Pooling> {
  const opened: Opened[] = [];
  const open = async (): Promise<pg.ClientBase> => {
    const another = await openClient(address.url);
    opened.push(another);
    return another.client;
  };
  try {
    const one = await open();
    const first = await backendOf(one);
    if (told(one) === first) return "none";
    const other = await open();
    // A pooler in transaction mode gives `other` the connection that `one` has just released.
    try {
      await other.query("begin");
    } catch {
      return "statement";
    }
    const second = await backendOf(other);
    const again = await backendOf(one);
    await other.query("rollback");
    return second === first || again !== first ? "transaction" : "session";
  } catch (error) {
    throw explain(error, address);
  } finally {
    await Promise.all(opened.map(({ end }) => end()));
  }
}

/** Whether a pooler answers on this connection. */
export async function isPooled(client: pg.ClientBase): Promise<boolean> {
  return told(client) !== (await backendOf(client));
}

/**
 * Whether the server itself answers on this connection, with no pooler between, so that the
 * connection is ours alone. If so, the server ends every statement on it that takes longer than
 * `statementMs`. A limit that the role or the database already has takes precedence.
 */
export async function takeSession(client: pg.ClientBase, statementMs: number): Promise<boolean> {
  const text = `select pg_backend_pid() = $1::int as own,
    case when pg_backend_pid() = $1::int and current_setting('statement_timeout') = '0'
      then set_config('statement_timeout', $2, false) end`;
  const { rows } = await client.query({ text, values: [told(client), String(statementMs)], types });
  return (rows[0] as { own: boolean | null }).own === true;
}

/**
 * Begins a transaction in which the server ends statements after this time. Use it on connections
 * that a pooler shares with others.
 */
export async function beginBounded(client: pg.ClientBase, statementMs: number): Promise<void> {
  await client.query(
    `begin; select set_config('statement_timeout', '${statementMs}', true) where current_setting('statement_timeout') = '0'`,
  );
}

/** Returns the process id that the client received when it connected. */
function told(client: pg.ClientBase): number | null {
  return (client as { processID?: number | null }).processID ?? null;
}

async function backendOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]!.pid;
}
