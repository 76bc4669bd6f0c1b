/**
 * Decides which files in a data directory to trust. Other users of the machine can plant
 * directories, records and links in public places. So this checks owner and mode before anything is
 * read or run, and follows no symbolic links. It trusts root and the user of this process. If that
 * is root, it also trusts the owner of the directory that it serves.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
} from "node:fs";
import { dirname, join } from "node:path";
import { LocalPostgresError, systemCodeOf } from "./errors.js";
import { isServerUser } from "./identity.js";

/** Is in a data directory until all of its first content is. */
export const initialisingMarker = "pawl-initialising";

const writableByOthers = 0o022;

/**
 * Refuses a data directory that another user made or could have written to. `directory` contains no
 * links.
 */
export function requireTrustedDirectory(directory: string): void {
  const found = lstatSync(directory);
  if (!found.isDirectory()) throw untrusted(directory, "is not a directory", "Name another directory");
  requireOwner(directory, found);
  if ((found.mode & writableByOthers) !== 0) {
    // An empty directory is safe once nobody else can write to it.
    if (listDirectory(directory).length === 0) chmodSync(directory, 0o700);
    if ((lstatSync(directory).mode & writableByOthers) !== 0 || listDirectory(directory).length > 0) {
      throw untrusted(
        directory,
        `can be written by other users (mode ${octal(found.mode)}), who may have changed its content`,
        `If you know all of it, close it (chmod -R go-w ${directory}); else name another directory`,
      );
    }
  }
  const isTrusted = trustedOwners(directory);
  for (const name of listDirectory(directory)) {
    const entry = lstatSync(join(directory, name), { throwIfNoEntry: false });
    if (entry === undefined || isTrusted(entry.uid) || isBeingFilled(directory)) continue;
    // Root gives the directory away when all is in it, and removes the marker then: look again at
    // whose it is.
    if (!trustedOwners(directory)(entry.uid)) throw planted(join(directory, name), entry);
  }
}

export type Owners = (uid: number) => boolean;

/** Whose files in this directory are believed. */
export function trustedOwners(directory: string): Owners {
  const own = userId();
  if (own !== 0) return (uid) => uid === 0 || uid === own;
  const { uid: owner } = lstatSync(directory);
  return (uid) => uid === 0 || uid === owner || isServerUser(uid);
}

/** Whether another process of root fills it now. It is closed to all others for that long. */
function isBeingFilled(directory: string): boolean {
  const marker = lstatSync(join(directory, initialisingMarker), { throwIfNoEntry: false });
  return userId() === 0 && marker?.isFile() === true && marker.uid === 0 && lstatSync(directory).uid === 0;
}

/** The content of a file that one of these users wrote, and nobody else can change. */
export function readTrusted(file: string, isTrusted: Owners): string {
  const descriptor = openWithoutFollowing(file);
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw untrusted(file, "is not an ordinary file", `Remove it: rm ${file}`);
    if (!isTrusted(found.uid)) throw planted(file, found);
    if ((found.mode & writableByOthers) !== 0) {
      throw untrusted(
        file,
        `can be written by other users (mode ${octal(found.mode)})`,
        `If you know its content, close it: chmod go-w ${file}`,
      );
    }
    return readFileSync(descriptor, "utf8");
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Whether one of these users listens there: after a reboot anybody can make a directory of the same
 * name in /tmp.
 */
export function isTrustedSocket(socketPath: string, isTrusted: Owners): boolean {
  const directory = lstatSync(dirname(socketPath), { throwIfNoEntry: false });
  const socket = lstatSync(socketPath, { throwIfNoEntry: false });
  if (directory?.isDirectory() !== true || socket?.isSocket() !== true) return false;
  const isClosed = (directory.mode & writableByOthers) === 0;
  return isClosed && isTrusted(directory.uid) && isTrusted(socket.uid);
}

function requireOwner(directory: string, { uid: owner }: Stats): void {
  const uid = userId();
  if (owner === uid) return;
  if (uid !== 0) throw foreignOwner(directory, owner);
  // Root serves the directories of others, where they are at home. In a public place anybody can
  // have put it there.
  if (isServerUser(owner)) return;
  const parent = lstatSync(dirname(directory));
  if ((parent.mode & 0o002) === 0 || parent.uid === owner) return;
  throw untrusted(
    directory,
    `belongs to user id ${owner} and lies in ${dirname(directory)}, where everybody can create directories`,
    `If you made it, take it over (chown -R root ${directory}); else name one where only you can write`,
  );
}

function listDirectory(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (systemCodeOf(error) === "EACCES") throw foreignOwner(directory, lstatSync(directory).uid);
    throw error;
  }
}

function openWithoutFollowing(file: string): number {
  try {
    // Without O_NONBLOCK a pipe that somebody planted would keep us waiting.
    return openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (systemCodeOf(error) !== "ELOOP") throw error;
    throw untrusted(file, "is a symbolic link, and none is followed", `Remove it: rm ${file}`);
  }
}

function userId(): number {
  return process.getuid?.() ?? 0;
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

function planted(path: string, { uid: owner }: Stats): LocalPostgresError {
  return untrusted(
    path,
    `belongs to user id ${owner}, not to you (${userId()}), so that user may have planted it`,
    `Remove it (rm -r ${path}), change its owner if you know its content, or name another directory`,
  );
}

function foreignOwner(directory: string, owner: number): LocalPostgresError {
  return new LocalPostgresError(
    "StartFailed",
    `directory ${directory} belongs to user id ${owner}, not to you (${userId()}), and PostgreSQL runs only ` +
      "on its owner's directory. Run as that user, change the owner (chown -R), or name another directory",
  );
}

function untrusted(path: string, found: string, fix: string): LocalPostgresError {
  return new LocalPostgresError("StartFailed", `${path} is not used: it ${found}. ${fix}`);
}
