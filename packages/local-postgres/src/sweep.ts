/**
 * Cleans up after servers of this user whose supervisor and watcher were both killed, for example
 * with a whole container. Removes their runtime directories and ends their postmasters.
 */
import { lstatSync, readFileSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { systemCodeOf } from "./errors.js";
import { endServerWithSocket } from "./orphan.js";
import { runtimePaths, runtimePattern, type RuntimePaths } from "./places.js";

/** A directory without a control socket may belong to a supervisor that is just starting. */
const youngestMs = 60_000;

/**
 * Never fails: a running server does not care about files that cannot be removed, or that another
 * process removes.
 */
export async function sweepLeftovers(base: string): Promise<void> {
  const names = await readdir(base).catch(() => []);
  for (const name of names.filter((entry) => runtimePattern.test(entry))) {
    await sweepDirectory(runtimePaths(join(base, name))).catch(() => {});
  }
}

async function sweepDirectory(paths: RuntimePaths): Promise<void> {
  if (!(await isAbandoned(paths))) return;
  const dataDirectory = readNote(paths.note);
  if (dataDirectory !== undefined) await endServerWithSocket(dataDirectory, paths.socketDirectory);
  await rm(paths.directory, { recursive: true, force: true });
}

async function isAbandoned(paths: RuntimePaths): Promise<boolean> {
  const found = lstatSync(paths.directory);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) return false;
  const refusal = await whyUnanswered(paths.controlSocket);
  if (refusal === "ECONNREFUSED") return true;
  return refusal === "ENOENT" && Date.now() - found.mtimeMs > youngestMs;
}

function whyUnanswered(socketPath: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(socketPath, () => {
      socket.destroy();
      resolve(undefined);
    });
    socket.once("error", (error) => resolve(systemCodeOf(error)));
  });
}

function readNote(note: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(readFileSync(note, "utf8"));
    const isNote = typeof parsed === "object" && parsed !== null && "dataDirectory" in parsed;
    return isNote && typeof parsed.dataDirectory === "string" ? parsed.dataDirectory : undefined;
  } catch {
    return undefined;
  }
}
