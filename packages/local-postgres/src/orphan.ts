/**
 * Deals with the postmaster.pid that a dead supervisor left in a data directory. It ends a
 * postmaster that still runs on the directory, and removes a file that names another process. It
 * leaves a server of somebody else alone and reports it. It sends signals to a process only if its
 * command line shows that it is ours.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { LocalPostgresError, systemCodeOf } from "./errors.js";

/** The last argument of every postmaster of this package: says on which directory it runs. */
export function directoryMark(dataDirectory: string): string {
  return `pawl.directory=${dataDirectory}`;
}

export async function clearOrphan(dataDirectory: string): Promise<void> {
  const lockFile = join(dataDirectory, "postmaster.pid");
  const pid = readPid(lockFile);
  if (pid === undefined) return;
  const command = commandLineOf(pid);
  if (command.endsWith(directoryMark(dataDirectory))) {
    await endWhile(pid, (current) => current.endsWith(directoryMark(dataDirectory)));
    return;
  }
  // The server of another directory, from which this one was copied together with its lock file, is
  // no obstacle.
  const isForeignServer = /(^|\/)postgres(\s|$)/.test(command) && !command.includes("pawl.directory=");
  if (isForeignServer) {
    throw new LocalPostgresError(
      "StartFailed",
      `directory ${dataDirectory} is in use by a PostgreSQL server that this package did not start (process ${pid}: ` +
        `${command}). Stop that server, or name another directory`,
    );
  }
  rmSync(lockFile, { force: true });
}

/**
 * For a cleaner: ends the server of the directory only if it uses that socket directory, not a
 * later one's.
 */
export async function endServerWithSocket(dataDirectory: string, socketDirectory: string): Promise<void> {
  const pid = readPid(join(dataDirectory, "postmaster.pid"));
  if (pid === undefined) return;
  const mark = directoryMark(dataDirectory);
  await endWhile(pid, (command) => command.endsWith(mark) && command.includes(socketDirectory));
}

/** Asks for a clean end, then for an immediate one, then insists; each for a bounded time. */
async function endWhile(pid: number, isOurs: (command: string) => boolean): Promise<void> {
  const isRunning = () => isOurs(commandLineOf(pid));
  for (const signal of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    if (!isRunning()) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (systemCodeOf(error) === "ESRCH") return;
      throw error;
    }
    const patienceMs = 3000;
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline && isRunning();) await delay(10);
  }
}

function readPid(lockFile: string): number | undefined {
  try {
    const pid = Number(readFileSync(lockFile, "utf8").split("\n", 1)[0]);
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Empty when there is no such process, also for one that has ended and waits for its parent. */
function commandLineOf(pid: number): string {
  if (process.platform !== "linux") {
    return spawnSync("ps", ["-ww", "-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout.trim();
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}
