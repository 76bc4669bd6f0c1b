/** A standby of the server under test, made by copying its files, that can take its place. */

import { cpSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalPostgres, startLocalPostgres } from "@pawl/local-postgres";
import { lastingPort } from "../../support/lasting-port.js";
import { until } from "../../support/until.js";
import { type Arena, ask } from "./arena.js";

export interface Standby {
  readonly server: LocalPostgres;
  readonly url: string;
  /** Resolves when it takes writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/** The settings that a primary needs. */
export const primarySettings = { wal_keep_size: "512MB" };

export interface StandbyOptions {
  readonly isSynchronous: boolean;
  /** The address of the primary. */
  readonly link?: string;
  /** Where its files are put. */
  readonly under?: string;
  /** Of the standby, which will be a primary. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Copies the files of the server, which is down for that long. `link` is the address that it follows. */
export async function makeStandby(
  { server, sql }: Pick<Arena, "server" | "sql">,
  { isSynchronous, link = server.url, under = tmpdir(), settings: own = primarySettings }: StandbyOptions,
): Promise<Standby> {
  // Each promotion leaves the segment it happened in once more, under its new timeline: on to the next, and without the old ones.
  await sql("select pg_switch_wal()");
  await sql("checkpoint");
  await server.kill();
  const place = mkdtempSync(join(under, "pawl-standby-"));
  const directory = join(place, "data");
  cpSync(server.directory, directory, { recursive: true });
  writeFileSync(join(directory, "standby.signal"), "");
  await server.start();
  const { hostname, port, password } = new URL(link);
  const settings = {
    ...own,
    ...ownLog,
    // Without encryption: what lies between may read the protocol.
    primary_conninfo: `host=${hostname} port=${port} user=postgres password=${password} sslmode=disable gssencmode=disable`,
  };
  const standby = await startLocalPostgres({ directory, port: await lastingPort(), settings });
  await until("the standby follows", async () => (await streaming(sql)).length === 1, 60_000);
  if (isSynchronous) {
    await sql("alter system set synchronous_standby_names = '*'");
    await sql("select pg_reload_conf()");
    await until("it is synchronous", async () => (await streaming(sql))[0]?.sync_state === "sync", 60_000);
  }
  return {
    server: standby,
    url: standby.url,
    promote: async () => {
      await until("the standby is promoted", () => ask(standby.url, "select pg_promote()"), 60_000).catch(
        (error: Error) => {
          throw new Error(`${error.message}\n${describe(directory)}`);
        },
      );
    },
    stop: async () => {
      await standby.stop();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** In its own directory, where it can be read when something went wrong. */
const ownLog = { logging_collector: "on", log_directory: "log", log_filename: "standby.log" };

/** The end of its log, and what is left of its disk. */
function describe(directory: string): string {
  const { bavail, bsize } = statfsSync(directory);
  const lines = readFileSync(join(directory, "log", "standby.log"), "utf8")
    .trimEnd()
    .split("\n")
    .slice(-40);
  return [`${Math.round((bavail * bsize) / 1024 ** 2)} MiB of its disk are free; its log:`, ...lines].join(
    "\n",
  );
}

const streaming = (sql: Arena["sql"]) =>
  sql<{ sync_state: string }>("select sync_state from pg_stat_replication where state = 'streaming'");

/** A primary that is down comes back, as a standby of nobody: it takes no writes any more. */
export async function startReadOnly(server: LocalPostgres): Promise<void> {
  writeFileSync(join(server.directory, "standby.signal"), "");
  await server.start();
}
