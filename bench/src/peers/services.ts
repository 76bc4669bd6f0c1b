/**
 * The servers that some contestants need beside Postgres: Redis for BullMQ, the server of Restate.
 * Each measurement gets a new one with an empty directory, on loopback only, which ends with the
 * measurement. Both are as durable as their documentation recommends, see `bench/README.md`.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { type AddressInfo, connect, createServer } from "node:net";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import type { Contestant } from "./contestants.js";
import { peersDirectory } from "./program.js";

export interface Service {
  /** Redis: its URL. Restate: the URLs of ingress and administration, with a space between. */
  readonly url: string;
  stop(): Promise<void>;
}

const longestStartMs = 30_000;
const lookMs = 50;

/** Why this kind of storage cannot be used here; undefined if it can. */
export function missing(storage: Contestant["storage"]): string | undefined {
  if (storage === "redis" && spawnSync("redis-server", ["--version"]).status !== 0)
    return "there is no redis-server (apt-get install redis-server)";
  if (storage === "own server") {
    const path = restatePath();
    if (path === undefined) return `npm ships no restate-server for ${platform()}-${arch()}`;
    const { status, error } = spawnSync(path, ["--version"]);
    if (status !== 0) return `its server does not run here: ${error?.message ?? `code ${status}`}`;
  }
  return undefined;
}

export async function startService(storage: Contestant["storage"]): Promise<Service> {
  switch (storage) {
    case "postgres":
      return { url: "", stop: () => Promise.resolve() };
    case "redis":
      return startRedis();
    case "own server":
      return startRestate();
  }
}

async function startRedis(): Promise<Service> {
  const [port] = await freePorts(1);
  const options = {
    port: String(port),
    bind: "127.0.0.1",
    daemonize: "no",
    // BullMQ's "Going to production": an append-only file, written out every second, and nothing is
    // ever evicted.
    save: "",
    appendonly: "yes",
    appendfsync: "everysec",
    "maxmemory-policy": "noeviction",
  };
  const args = (directory: string): string[] =>
    Object.entries({ ...options, dir: directory }).flatMap(([name, value]) => [`--${name}`, value]);
  return launch("redis-server", args, {}, `redis://127.0.0.1:${port}`, () => accepts(port!));
}

async function startRestate(): Promise<Service> {
  const [ingress, admin, fabric] = await freePorts(3);
  const url = (port: number | undefined): string => `http://127.0.0.1:${port}`;
  const environment = {
    RESTATE_BIND_IP: "127.0.0.1",
    RESTATE_LISTEN_MODE: "tcp",
    RESTATE_BIND_PORT: String(fabric),
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_LOG_FILTER: "error",
    DO_NOT_TRACK: "1",
  };
  const args = (directory: string): string[] => ["--base-dir", directory, "--no-logo"];
  const isReady = async (): Promise<boolean> =>
    (await answers(`${url(admin)}/health`)) && (await answers(`${url(ingress)}/restate/health`));
  return launch(restatePath()!, args, environment, `${url(ingress)} ${url(admin)}`, isReady);
}

/** The program itself: its npm wrapper would be killed without it. */
function restatePath(): string | undefined {
  try {
    return createRequire(peersDirectory).resolve(
      `@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`,
    );
  } catch {
    return undefined;
  }
}

async function launch(
  command: string,
  args: (directory: string) => string[],
  environment: Record<string, string>,
  url: string,
  isReady: () => Promise<boolean>,
): Promise<Service> {
  const directory = await mkdtemp(join(tmpdir(), "pawl-peers-"));
  const child = spawn(command, args(directory), {
    cwd: directory,
    stdio: "ignore",
    env: { ...process.env, ...environment },
  });
  child.on("error", () => {}); // it never gets ready then
  const stop = async (): Promise<void> => {
    await kill(child);
    await rm(directory, { recursive: true, force: true });
  };
  const deadline = Date.now() + longestStartMs;
  while (!(await isReady())) {
    if (child.exitCode !== null || child.pid === undefined || Date.now() > deadline) {
      await stop();
      throw new Error(`${command} did not start`);
    }
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
  return { url, stop };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** Free ports; all stay open until all are known, so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
