/**
 * The cache for initialised data directories and copied binaries. It is in a public directory, so
 * it is used only if it is ours and nobody else can change it. Files that another user planted are
 * never run. Without a trustworthy cache everything works, but slower.
 */
import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemCodeOf } from "./errors.js";

export function trustedCache(base: string): string | undefined {
  const uid = process.getuid?.() ?? 0;
  const directory = join(base, `pawl-postgres-cache-${uid}`);
  // Root's cache holds binaries that the unprivileged server runs: it may pass through, but neither
  // list nor write.
  const mode = uid === 0 ? 0o711 : 0o700;
  try {
    mkdirSync(directory, { mode });
  } catch (error) {
    if (systemCodeOf(error) !== "EEXIST") return undefined;
  }
  if (!isPrivate(directory)) return undefined;
  chmodSync(directory, mode); // mkdir's mode was narrowed by the umask
  return directory;
}

function isPrivate(directory: string): boolean {
  try {
    const found = lstatSync(directory);
    return found.isDirectory() && found.uid === (process.getuid?.() ?? 0) && (found.mode & 0o022) === 0;
  } catch {
    return false;
  }
}

/**
 * Moves a finished directory into the cache in one step, so that nobody sees half of it. If another
 * process was first, its copy stays and ours is dropped: both are the same.
 */
export function publish(finished: string, cached: string): boolean {
  try {
    renameSync(finished, cached);
    return true;
  } catch {
    return false;
  }
}

/** Takes a damaged entry out in one step, for those who are reading it now, and then deletes it. */
export function discard(cached: string): void {
  const trash = `${cached}.${process.pid}.trash`;
  if (publish(cached, trash)) rmSync(trash, { recursive: true, force: true });
}
