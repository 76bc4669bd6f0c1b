/**
 * Observes a server from outside: whether its process runs, its answers, and waiting until
 * something holds.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { afterAll } from "vitest";

export const isRoot = process.getuid?.() === 0;

/**
 * Every test file has a temporary directory of its own, where it can see whatever is left behind.
 * In memory when there is plenty: each server means more than a thousand small files.
 */
export const temporaryBase = mkdtempSync(join(isRoomy("/dev/shm") ? "/dev/shm" : tmpdir(), "lp-test-"));
chmodSync(temporaryBase, 0o1777);
process.env["TMPDIR"] = temporaryBase;

afterAll(async () => {
  try {
    await Promise.all(servers.map((server) => server.stop()));
    await until("no test has left a server behind", () => runtimeDirectories().length === 0);
  } finally {
    rmSync(temporaryBase, { recursive: true, force: true, maxRetries: 20 });
  }
});

function runtimeDirectories(): string[] {
  return readdirSync(temporaryBase).filter((name) => /^pawl-postgres-[^-]+$/.test(name));
}

/** Containers often have little shared memory, or forbid running programs from it. */
function isRoomy(directory: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(directory);
    const script = join(directory, `lp-test-${process.pid}.sh`);
    writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
    const { status } = spawnSync(script);
    rmSync(script);
    return status === 0 && bavail * bsize > 2 ** 31;
  } catch {
    return false;
  }
}

/** A private directory, removed with all others at the end of the test file. */
export function temporaryDirectory(mode = 0o700): string {
  const directory = mkdtempSync(join(temporaryBase, "directory-"));
  chmodSync(directory, mode);
  return directory;
}

/** Waits for a condition; fails with what was expected when it does not come true in time. */
export async function until(what: string, condition: () => boolean, timeoutMs = 5000): Promise<void> {
  for (const deadline = Date.now() + timeoutMs; !condition(); await delay(20)) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
  }
}

export async function query(url: string, sql: string): Promise<unknown[][]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {}); // the server may be killed under it
  await client.connect();
  try {
    const result = await client.query<unknown[]>({ text: sql, rowMode: "array" });
    return result.rows;
  } finally {
    await client.end();
  }
}

/** Whether the command could be run and succeeded. */
export function runCommand([program = "", ...programArguments]: string[]): boolean {
  return spawnSync(program, programArguments).status === 0;
}

/** A process that has ended and waits for its parent does not count. */
export function isRunning(pid: number): boolean {
  const state = processField(pid, "state");
  return state !== "" && !state.startsWith("Z");
}

export function userOf(pid: number): number {
  return Number(processField(pid, "uid"));
}

export function parentOf(pid: number): number {
  return Number(processField(pid, "ppid"));
}

/** The processes whose command line contains the text. */
export function processesMentioning(text: string): number[] {
  const lines = spawnSync("ps", ["-A", "-ww", "-o", "pid=,command="], { encoding: "utf8" }).stdout.split(
    "\n",
  );
  return lines.filter((line) => line.includes(text)).map((line) => Number.parseInt(line.trim(), 10));
}

function processField(pid: number, field: "state" | "ppid" | "uid"): string {
  if (process.platform === "linux") return linuxProcessField(pid, field);
  return spawnSync("ps", ["-o", `${field}=`, "-p", String(pid)], { encoding: "utf8" }).stdout.trim();
}

/** Without a process of its own: conditions are looked at many times a second. */
function linuxProcessField(pid: number, field: "state" | "ppid" | "uid"): string {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return new RegExp(`^${field}:\\s+(\\S+)`, "im").exec(status)?.[1] ?? "";
  } catch {
    return "";
  }
}

/**
 * The directory with everything that must vanish with the server; its path is part of the socket's
 * URL.
 */
export function runtimeDirectoryOf(url: string): string {
  return dirname(new URL(url).searchParams.get("host") ?? "");
}

export function isGone(server: { url: string; pid: number }): boolean {
  return !isRunning(server.pid) && !existsSync(runtimeDirectoryOf(server.url));
}

const servers: Array<{ stop(): Promise<void> }> = [];

/** Stops a server at the end of the test file, also when its test fails. */
export function stopAtEnd<Server extends { stop(): Promise<void> }>(server: Server): Server {
  servers.push(server);
  return server;
}
