/**
 * Decides which operating system user runs PostgreSQL. PostgreSQL refuses to run as root, so for
 * root it runs as an unprivileged user that runs nothing else. Everybody else runs it as
 * themselves. Also checks whether that user can reach a path.
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
 * `dataDirectory` is an existing data directory, if there is one: root runs the server as its
 * owner, so that a directory made by an ordinary user stays usable by that user. Else the server
 * gets the user for servers.
 */
export function serverIdentity(dataDirectory: string | undefined): Identity | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (dataDirectory !== undefined) {
    const { uid, gid } = statSync(dataDirectory);
    if (uid !== 0) return { uid, gid };
  }
  return unusedUser() ?? nobody();
}

/**
 * The user that runs initdb for root: one that initdb can look up by name. It runs no server where
 * another can be had.
 */
export function initdbIdentity(): Identity | undefined {
  return process.getuid?.() === 0 ? nobody() : undefined;
}

/** Whether this is a user to whom root hands servers. */
export function isServerUser(uid: number): boolean {
  if (uid >= ownUsers.first && uid < ownUsers.first + ownUsers.count) return true;
  return !isMapped("uid", ownUsers.first) && uid === nobody().uid;
}

/**
 * User ids that no system gives to anybody, small enough for user namespaces that map 65,536 of
 * them. As `nobody`, or as the `postgres` of an installed PostgreSQL, the server and other
 * processes of that user could reach each other.
 */
const ownUsers = { first: 60_706, count: 478 };

/**
 * The first of them without a name; undefined where none can be had. All servers that root starts
 * share it: they are root's, and a standby must reach the socket of its primary.
 */
function unusedUser(): Identity | undefined {
  const { first, count } = ownUsers;
  if (!isMapped("uid", first) || !isMapped("gid", first)) return undefined;
  const entries = `${readIfThere("/etc/passwd")}\n${readIfThere("/etc/group")}`;
  const named = new Set([...entries.matchAll(/^[^:\n]+:[^:\n]*:(\d+):/gm)].map((entry) => Number(entry[1])));
  for (let id = first; id < first + count; id++) {
    if (!named.has(id)) return { uid: id, gid: id };
  }
  return undefined;
}

/**
 * Whether this number, and those that follow it, mean a user in our namespace. Only Linux tells.
 */
function isMapped(kind: "uid" | "gid", first: number): boolean {
  const lines = readIfThere(`/proc/self/${kind}_map`).trim().split("\n");
  return lines.some((line) => {
    const [inside = NaN, , length = NaN] = line.trim().split(/\s+/).map(Number);
    return inside <= first && first + ownUsers.count <= inside + length;
  });
}

/** The user `nobody` of this system (its number differs between systems). */
function nobody(): Identity {
  const entry = /^nobody:[^:]*:(-?\d+):(-?\d+):/m.exec(readIfThere("/etc/passwd"));
  return entry ? { uid: Number(entry[1]), gid: Number(entry[2]) } : { uid: 65_534, gid: 65_534 };
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/**
 * For system calls that fail because this root is root only in name: a user namespace that maps no
 * other user.
 */
export function cannotBecome(identity: Identity, cause: unknown): LocalPostgresError {
  return unsupported(
    `PostgreSQL refuses to run as root, and this root cannot become user id ${identity.uid}. Run as ` +
      "an ordinary user, or map more user ids into the user namespace of the container",
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
