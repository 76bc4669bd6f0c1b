/**
 * Copies a directory tree and sets owner and permissions, regardless of the source. Used for the
 * binaries (readable by the server's user) and for data directories (private to it). Files share
 * their blocks with the source on file systems that can.
 */
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "./errors.js";
import type { Identity } from "./identity.js";

export interface CopyOptions {
  directoryMode: number;
  /** Given the mode of the source file. */
  fileMode: (sourceMode: number) => number;
  owner: Identity | undefined;
}

/** `to` may exist already; its own mode and owner are set like those of the directories inside. */
export function copyTree(from: string, to: string, options: CopyOptions): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) {
      copyTree(source, target, options);
    } else if (entry.isSymbolicLink()) {
      symlinkSync(readlinkSync(source), target);
      if (options.owner) lchownSync(target, options.owner.uid, options.owner.gid);
    } else if (entry.isFile()) {
      copyFileSync(source, target, constants.COPYFILE_FICLONE);
      chmodSync(target, options.fileMode(statSync(source).mode));
      if (options.owner) chownSync(target, options.owner.uid, options.owner.gid);
    }
  }
  chmodSync(to, options.directoryMode);
  if (options.owner) chownSync(to, options.owner.uid, options.owner.gid);
}

export function changeOwner(directory: string, owner: Identity): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) changeOwner(path, owner);
    else ifThere(() => lchownSync(path, owner.uid, owner.gid));
  }
  lchownSync(directory, owner.uid, owner.gid);
}

/**
 * Another process that starts or joins the same server writes and removes its own record at the
 * same time.
 */
function ifThere(change: () => void): void {
  try {
    change();
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw error;
  }
}

/**
 * Makes a copied tree survive a power failure: PostgreSQL relies on its files being on disk before
 * it starts.
 */
export async function syncTree(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const paths = [directory];
  for (const entry of entries) {
    if (entry.isFile() || entry.isDirectory()) paths.push(join(entry.parentPath, entry.name));
  }
  const atOnce = 32;
  for (let first = 0; first < paths.length; first += atOnce) {
    await Promise.all(paths.slice(first, first + atOnce).map(syncPath));
  }
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r").catch((error: unknown) => {
    if (systemCodeOf(error) === "ENOENT") return undefined; // a record, see ifThere
    throw error;
  });
  if (handle === undefined) return;
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
