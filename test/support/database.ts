/**
 * A database of its own for a test file, copied from the migrated template, with the store on it and a plain
 * connection to look behind it. Dropped when the file ends.
 */

import { randomBytes } from "node:crypto";
import { fork } from "pawl";
import pg from "pg";
import { afterAll, inject } from "vitest";
import { isOverHttp, startTestServer } from "./setup/transport.js";
import { TestStore } from "./test-store.js";

export interface TestDatabase {
  /** What clients and workers use: through a pooler in the project `pgbouncer`, by a role that owns nothing in `granted`. */
  readonly url: string;
  /** The server on it, when the laws are run over HTTP. */
  readonly server?: string | undefined;
  /** What needs the server itself: who is let in, and what there is. */
  readonly directUrl: string;
  readonly store: TestStore;
  /** Runs SQL with the schema as search_path and answers its rows. */
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** A connection of its own, closed at the end. */
  connect(): Promise<pg.Client>;
}

/** Makes the database; call it at the top of a test file. */
export async function testDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const server = inject("databaseUrl");
  const name = `pawl_test_${randomBytes(6).toString("hex")}`;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  await admin.query(`create database ${name} ${options.empty ? "" : `template ${inject("templateName")}`}`);
  const direct = databaseOf(server, name);
  const pooled = inject("pooledUrl");
  const role = inject("grantedRole");
  const url =
    role !== null && !options.empty
      ? asRole(direct, role)
      : pooled === null
        ? direct
        : databaseOf(pooled, name);
  const store = new TestStore({ url, schema: "pawl" }, { connections: 5 });
  // A copy of the template, as far as it knows: its workers would warn of that.
  if (!options.empty) await fork.adopt({ url: role === null ? url : direct });
  const clients: pg.Client[] = [];
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: direct });
    client.on("error", () => {});
    await client.connect();
    await client.query("set search_path = pawl, public");
    clients.push(client);
    return client;
  };
  let plain: Promise<pg.Client> | undefined;
  const through = isOverHttp && !options.empty ? await startTestServer(url) : undefined;
  afterAll(async () => {
    await through?.stop();
    await store.close();
    for (const client of clients) await client.end().catch(() => {});
    await admin.query(`drop database ${name} with (force)`);
    await admin.end();
  });
  return {
    url,
    server: through?.url,
    directUrl: direct,
    store,
    connect,
    sql: async <Row>(text: string, values: unknown[] = []) => {
      plain ??= connect();
      return (await (await plain).query(text, values)).rows as Row[];
    },
  };
}

/** The URL of another database of this server. */
export function databaseOf(server: string, name: string): string {
  const address = new URL(server);
  address.pathname = `/${name}`;
  return address.href;
}

/** The same database for a role whose password is its name. */
function asRole(url: string, role: string): string {
  const address = new URL(url);
  address.username = role;
  address.password = role;
  return address.href;
}
