/**
 * Connections whose calls can be told apart: each has the store on it alone, so that a test decides which transaction
 * an operation runs in. Every SQLSTATE that PostgreSQL answers is noted, also of calls that the store tries again.
 * Deadlocks are looked for after 10 ms: a cycle of waits is then found before the 100 ms after which the functions
 * give up waiting, which would hide it.
 */

import type pg from "pg";
import { TestStore } from "../support/test-store.js";
import type { TestDatabase } from "../support/database.js";

export interface Connection {
  readonly store: TestStore;
  readonly pid: number;
  query<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
}

export interface Connections {
  open(): Promise<Connection>;
  /** SQLSTATEs of all errors so far. */
  readonly errors: readonly string[];
  /** How many deadlocks PostgreSQL has found in this database. */
  deadlocks(): Promise<number>;
}

export async function connectionsTo(database: TestDatabase): Promise<Connections> {
  const errors: string[] = [];
  const [current] = await database.sql<{ name: string }>("select current_database() as name");
  await database.sql(`alter database "${current!.name}" set deadlock_timeout = '10ms'`);
  const clients: pg.Client[] = [];
  return {
    errors,
    open: async () => {
      const client = await database.connect();
      clients.push(client);
      const call = async (...given: unknown[]): Promise<pg.QueryResult> => {
        try {
          return await (client.query as (...values: unknown[]) => Promise<pg.QueryResult>)(...given);
        } catch (error) {
          errors.push((error as pg.DatabaseError).code ?? String(error));
          throw error;
        }
      };
      const pool = { query: (config: unknown) => call(config) } as unknown as pg.Pool;
      const { rows } = await call("select pg_backend_pid() as pid");
      return {
        store: new TestStore({ url: database.url, schema: "pawl" }, { connections: 1, pool }),
        pid: (rows as { pid: number }[])[0]!.pid,
        query: async <Row>(text: string, values: unknown[] = []) => (await call(text, values)).rows as Row[],
      };
    },
    deadlocks: async () => {
      // a backend reports what it has counted when it is asked to, or after a second
      for (const client of clients) await client.query("select pg_stat_force_next_flush()");
      const [row] = await database.sql<{ deadlocks: string }>(
        "select deadlocks from pg_stat_database where datname = current_database()",
      );
      const met = errors.filter((code) => code === "40P01").length;
      return Math.max(Number(row!.deadlocks), met);
    },
  };
}
