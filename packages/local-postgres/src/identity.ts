/**
 * Decides which operating system user runs PostgreSQL. PostgreSQL refuses to run as root, so root hands it to an
 * unprivileged user; everybody else runs it as themselves. Also answers whether that user can reach a path.
 */
import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { LocalPostgresError } from "./errors.js";
import { unsupported } from "./platform.js";

/** The user that runs the server, or undefined when it is the user of this process. */
export interface Identity {
  uid: number;
  gid: number;
}

/**
 * `dataDirectory` is an existing data directory, if there is one: root runs the server as its owner, so that a
 * directory made by an ordinary user stays usable by that user.
 */
export function serverIdentity(dataDirectory: string | undefined): Identity | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (dataDirectory !== undefined) {
    const { uid, gid } = statSync(dataDirectory);
    if (uid !== 0) return { uid, gid };
  }
  return nobody();
}

/** The user `nobody` of this system (its number differs between systems), which initdb can look up by name. */
function nobody(): Identity {
  const fallback = { uid: 65_534, gid: 65_534 };
  try {
    const entry = /^nobody:[^:]*:(-?\d+):(-?\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
    return entry ? { uid: Number(entry[1]), gid: Number(entry[2]) } : fallback;
  } catch {
    return fallback;
  }
}

/** For system calls that fail because this root is root only in name: a user namespace that maps no other user. */
export function cannotBecome(identity: Identity, cause: unknown): LocalPostgresError {
  return unsupported(
    `PostgreSQL refuses to run as root, and this root cannot become user id ${identity.uid} (a container whose user ` +
      "namespace maps only root?). Run as an ordinary user, or map more user ids into the container",
    cause,
  );
}

/** Whether the server's user may pass through every directory on the way to `path`. */
export function canReach(identity: Identity | undefined, path: string): boolean {
  if (identity === undefined) return true;
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    const { uid, gid, mode } = statSync(directory);
    const executeBit = uid === identity.uid ? 0o100 : gid === identity.gid ? 0o010 : 0o001;
    if ((mode & executeBit) === 0) return false;
    if (directory === dirname(directory)) return true;
  }
}
