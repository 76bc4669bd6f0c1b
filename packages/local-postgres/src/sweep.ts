/**
 * Removes what earlier servers of this user left behind when their supervisor and its watcher were both killed, for
 * example with a whole container: runtime directories that nobody answers for, and the postmasters that use them.
 */
import { lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { systemCodeOf } from "./errors.js";
import { endServerWithSocket } from "./orphan.js";
import { runtimePaths, runtimePattern, type RuntimePaths } from "./places.js";

/** A directory without a control socket may belong to a supervisor that is just starting. */
const youngestMs = 60_000;

export async function sweepLeftovers(base: string): Promise<void> {
  for (const name of readdirSync(base).filter((entry) => runtimePattern.test(entry))) {
    try {
      const paths = runtimePaths(join(base, name));
      if (await isAbandoned(paths)) await remove(paths);
    } catch {
      // Somebody else sweeps as well, or it cannot be removed: neither concerns the server being started.
    }
  }
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

async function remove(paths: RuntimePaths): Promise<void> {
  const dataDirectory = readNote(paths.note);
  if (dataDirectory !== undefined) await endServerWithSocket(dataDirectory, paths.socketDirectory);
  rmSync(paths.directory, { recursive: true, force: true });
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
