/**
 * Finds out whether a pooler is between us and the database, and how it shares connections: a pooler tells another process id than
 * the server does, and one that pools by transaction gives the connection of one client to the next between two statements. Called by
 * `pawl doctor`, before a database is copied, and before statements are prepared and bounded in time.
 */

import pg from "pg";
import type { Pooling } from "../health.js";
import { type Address, connectionOptions, types } from "./database.js";
import { explain } from "./database-errors.js";

export async function findPooling(address: Address): Promise<Pooling> {
  const [one, other] = [open(address), open(address)];
  try {
    await one.connect();
    const first = await backendOf(one);
    if (told(one) === first) return "none";
    await other.connect();
    // A pooler by transaction gives `other` the connection that `one` has just let go.
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
    await Promise.allSettled([one.end(), other.end()]);
  }
}

/** Whether a pooler answers this connection. */
export async function isPooled(client: pg.ClientBase): Promise<boolean> {
  return told(client) !== (await backendOf(client));
}

/**
 * Whether the server itself answers this connection, and no pooler: it is ours alone. Then the server ends every statement on it that
 * takes longer than this, unless the role or the database has a limit of its own.
 */
export async function takeSession(client: pg.ClientBase, statementMs: number): Promise<boolean> {
  const text = `select pg_backend_pid() = $1::int as own,
    case when pg_backend_pid() = $1::int and current_setting('statement_timeout') = '0'
      then set_config('statement_timeout', $2, false) end`;
  const { rows } = await client.query({ text, values: [told(client), String(statementMs)], types });
  return (rows[0] as { own: boolean | null }).own === true;
}

/** Begins a transaction whose statements the server ends after this time. For connections that a pooler shares with others. */
export async function beginBounded(client: pg.ClientBase, statementMs: number): Promise<void> {
  await client.query(
    `begin; select set_config('statement_timeout', '${statementMs}', true) where current_setting('statement_timeout') = '0'`,
  );
}

function open({ url }: Address): pg.Client {
  const client = new pg.Client(connectionOptions(url));
  client.on("error", () => {});
  return client;
}

/** The process id that came with the connection. */
function told(client: pg.ClientBase): number | null {
  return (client as { processID?: number | null }).processID ?? null;
}

async function backendOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]!.pid;
}
