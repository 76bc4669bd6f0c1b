/**
 * The measured Postgres: a throw-away local one with its default, durable settings, or the one in
 * `PAWL_BENCH_DATABASE_URL`. Every measurement gets its own database, migrated and empty. `close`
 * always drops them and ends the local server.
 */

import { randomBytes } from "node:crypto";
import { startLocalPostgres } from "@pawl/local-postgres";
import { migrate } from "pawl";
import { Client } from "pg";

export interface BenchDatabase {
  readonly url: string;
  /** The bench's own connection, to query the work of the engine. */
  readonly observer: Client;
  /** The postmaster, if it runs on this machine under our eyes. */
  readonly postmasterPid: number | undefined;
}

export interface BenchServer {
  readonly description: string;
  /** With the schema of Pawl, or without for contestants that bring their own. */
  createDatabase(content?: "migrated" | "empty"): Promise<BenchDatabase>;
  dropDatabase(database: BenchDatabase): Promise<void>;
  /** Drops the remaining databases and ends the local server; may be called again. */
  close(): Promise<void>;
}

/** Loaded only when profiling: it costs a little on every statement. */
const statementStatistics = {
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.track": "all",
};

export async function openServer(withStatistics: boolean): Promise<BenchServer> {
  const given = process.env["PAWL_BENCH_DATABASE_URL"];
  if (given !== undefined && given !== "") {
    return benchServer(given, undefined, withStatistics, () => Promise.resolve());
  }
  const local = await startLocalPostgres(withStatistics ? { settings: statementStatistics } : {});
  return benchServer(local.url, local.pid, withStatistics, () => local.stop());
}

async function benchServer(
  url: string,
  postmasterPid: number | undefined,
  withStatistics: boolean,
  stop: () => Promise<void>,
): Promise<BenchServer> {
  const open = new Map<string, BenchDatabase>();
  const administration = await connectTo(url);

  const dropDatabase = async (database: BenchDatabase): Promise<void> => {
    const name = new URL(database.url).pathname.slice(1);
    if (!open.delete(name)) return;
    await database.observer.end().catch(() => {});
    await administration.query(`drop database if exists ${name} with (force)`);
  };

  let closed: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    for (const database of open.values()) await dropDatabase(database);
    await administration.end();
    await stop();
  };

  return {
    description: await describe(administration),
    dropDatabase,
    async createDatabase(content = "migrated") {
      const name = `pawl_bench_${randomBytes(4).toString("hex")}`;
      await administration.query(`create database ${name}`);
      if (withStatistics) await administration.query(`alter database ${name} set track_functions = 'all'`);
      const own = new URL(url);
      own.pathname = `/${name}`;
      const database = { url: own.href, observer: await connectTo(own.href), postmasterPid };
      open.set(name, database);
      if (content === "migrated") await migrate({ url: own.href });
      return database;
    },
    close() {
      closed ??= closeAll();
      return closed;
    },
  };
}

async function connectTo(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: "pawl-bench" });
  client.on("error", () => {}); // the next statement on it says so
  await client.connect();
  return client;
}

/** The settings without which no figure can be compared. */
const telling = [
  "server_version",
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "wal_sync_method",
  "shared_buffers",
  "max_wal_size",
];

async function describe(client: Client): Promise<string> {
  const { rows } = await client.query<{ name: string; value: string }>(
    `select s.name, current_setting(s.name) as value from unnest($1::text[]) with ordinality s(name, o) order by s.o`,
    [telling],
  );
  return rows.map(({ name, value }) => `${name} ${value}`).join(", ");
}
