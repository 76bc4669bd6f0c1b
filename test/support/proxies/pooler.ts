/**
 * PgBouncer in transaction mode before a server, as people put it there: each transaction of a client may be on another connection of
 * the server. One for all databases of that server.
 */

import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { until } from "../until.js";

export interface Pooler {
  /** The address of this database through it. */
  through(url: string): string;
  stop(): Promise<void>;
}

/** Where the program is; installs Debian's package if it is missing and this process may. Null: it cannot be had. */
export function findPooler(): string | null {
  const find = (): string | null =>
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer", "pgbouncer"].find(
      (program) => spawnSync(program, ["--version"]).status === 0,
    ) ?? null;
  const found = find();
  if (found !== null || process.getuid?.() !== 0) return found;
  // At run level 1 the package does not start its service.
  const env = { ...process.env, RUNLEVEL: "1", DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...given: string[]): boolean =>
    spawnSync("apt-get", given, { env, stdio: "inherit" }).status === 0;
  const install = ["install", "-y", "--no-install-recommends", "pgbouncer"] as const;
  return apt(...install) || (apt("update") && apt(...install)) ? find() : null;
}

const nobody = 65_534;

export async function startPooler(program: string, server: string): Promise<Pooler> {
  const place = mkdtempSync(join(tmpdir(), "pawl-pooler-"));
  chmodSync(place, 0o755);
  const { host, port, user = "postgres", password } = new pg.Client({ connectionString: server });
  const ownPort = await freePort();
  const settings = join(place, "pgbouncer.ini");
  writeFileSync(
    settings,
    [
      "[databases]",
      `* = host=${host} port=${port} user=${user}${password ? ` password=${password}` : ""}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${ownPort}`,
      "unix_socket_dir =",
      "auth_type = any",
      "pool_mode = transaction",
      "max_client_conn = 2000",
      "default_pool_size = 12",
      "server_idle_timeout = 10",
      "ignore_startup_parameters = extra_float_digits",
      "",
    ].join("\n"),
  );
  // It does not run as root, and only the user of the server (and root) gets to the server's own socket.
  const isRoot = process.getuid?.() === 0;
  const runner = host.startsWith("/") ? statSync(host).uid : nobody;
  if (isRoot) chownSync(settings, runner, runner);
  const pooler = spawn(program, ["-q", settings], {
    stdio: ["ignore", "ignore", "pipe"],
    ...(isRoot ? { uid: runner, gid: runner } : {}),
  });
  let said = "";
  pooler.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-2_000);
  });
  const ended = new Promise<void>((resolve) => pooler.once("exit", () => resolve()));
  const through = (url: string): string => {
    const pooled = new URL(url);
    pooled.search = "";
    pooled.host = `127.0.0.1:${ownPort}`;
    return pooled.href;
  };
  const answers = async (): Promise<boolean> => {
    if (pooler.exitCode !== null) throw new Error(`pgbouncer has ended: ${said}`);
    const client = new pg.Client({ connectionString: through(server) });
    client.on("error", () => {});
    try {
      await client.connect();
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  };
  await until("pgbouncer answers", answers);
  return {
    through,
    stop: async () => {
      pooler.kill("SIGKILL");
      await ended;
      rmSync(place, { recursive: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
