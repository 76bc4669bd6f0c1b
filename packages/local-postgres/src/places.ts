/**
 * Chooses the place for temporary files. This process can write there, nobody else can replace
 * them, the server's user can reach them, and the path is short enough for a unix socket. Each
 * server gets one runtime directory there, with all files that must vanish with it.
 */
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalPostgresError, systemCodeOf } from "./errors.js";
import { cannotBecome, canReach, type Identity } from "./identity.js";

/**
 * The longest path of a unix socket that every supported system takes (macOS: 104 bytes with the
 * final zero).
 */
const longestSocketPath = 103;

export const runtimePattern = /^pawl-postgres-[A-Za-z0-9]{6}$/;

export interface RuntimePaths {
  /** The directory that is removed when the server ends. */
  directory: string;
  /** The supervisor listens here for the users of the server. */
  controlSocket: string;
  /** PostgreSQL puts its socket here; only the server's user (and root) may enter. */
  socketDirectory: string;
  /** The data directory of a throw-away server. */
  throwAwayData: string;
  /** A note for later cleaners: which data directory this server runs on. */
  note: string;
  log: string;
}

export function runtimePaths(directory: string): RuntimePaths {
  return {
    directory,
    controlSocket: join(directory, "control.sock"),
    socketDirectory: join(directory, "socket"),
    throwAwayData: join(directory, "data"),
    note: join(directory, "server.json"),
    log: join(directory, "postgres.log"),
  };
}

export function chooseTemporaryBase(identity: Identity | undefined): string {
  const refused: string[] = [];
  for (const candidate of new Set([tmpdir(), "/tmp", "/var/tmp"])) {
    const reason = whyUnusable(candidate, identity);
    if (reason === undefined) return realpathSync(candidate);
    refused.push(`${candidate} ${reason}`);
  }
  throw new LocalPostgresError(
    "StartFailed",
    `there is no usable directory for temporary files: ${refused.join("; ")}. Set TMPDIR to a short, writable one`,
  );
}

function whyUnusable(base: string, identity: Identity | undefined): string | undefined {
  try {
    const path = realpathSync(base);
    accessSync(path, constants.W_OK | constants.X_OK);
    const danger = whyReplaceable(path);
    if (danger !== undefined) return danger;
    const socketPath = join(
      runtimePaths(join(path, "pawl-postgres-XXXXXX")).socketDirectory,
      ".s.PGSQL.65535",
    );
    const excess = Buffer.byteLength(socketPath) - longestSocketPath;
    if (excess > 0) return `is ${excess} bytes too long for a unix socket`;
    if (!canReach(identity, join(path, "x"))) return `cannot be reached by user id ${identity?.uid}`;
    return undefined;
  } catch (error) {
    return `cannot be used (${error instanceof Error ? error.message : String(error)})`;
  }
}

/** Why another user could replace our directories there; undefined if nobody can. */
function whyReplaceable(base: string): string | undefined {
  const { uid, mode } = lstatSync(base);
  if (uid !== 0 && uid !== process.getuid?.()) return `belongs to another user (id ${uid})`;
  const isSticky = (mode & 0o1000) !== 0;
  if ((mode & 0o002) === 0 || isSticky) return undefined;
  return "lets everybody replace its content (chmod +t makes it safe)";
}

/**
 * Makes the runtime directory. For root it can be passed through, not listed: the server's user
 * must get inside.
 */
export function createRuntimeDirectory(base: string, identity: Identity | undefined): RuntimePaths {
  const paths = runtimePaths(mkdtempSync(join(base, "pawl-postgres-")));
  try {
    mkdirSync(paths.socketDirectory, { mode: 0o700 });
    if (identity) {
      chmodSync(paths.directory, 0o711);
      chownSync(paths.socketDirectory, identity.uid, identity.gid);
    }
    return paths;
  } catch (error) {
    rmSync(paths.directory, { recursive: true, force: true });
    const code = systemCodeOf(error);
    throw identity && (code === "EINVAL" || code === "EPERM") ? cannotBecome(identity, error) : error;
  }
}
