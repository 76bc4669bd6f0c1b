/**
 * Prepares a data directory for PostgreSQL: initialised, owned by the server's user, private. It
 * refuses a directory with other content and leaves it untouched. A marker shows an interrupted
 * initialisation, which then begins again.
 */
import { chmodSync, lchownSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isServerRecord } from "./claim.js";
import { changeOwner, copyTree, syncTree } from "./copy-tree.js";
import { LocalPostgresError } from "./errors.js";
import { isServerUser, type Identity } from "./identity.js";
import { invalid } from "./options.js";
import { initialisingMarker, readTrusted, requireTrustedDirectory, trustedOwners } from "./trust.js";

/**
 * Whether the directory holds a database cluster that this version can run. Refuses one that others
 * may have filled.
 */
export function isInitialised(directory: string, majorVersion: string): boolean {
  requireTrustedDirectory(directory);
  const names = readdirSync(directory).filter((name) => !isServerRecord(name));
  if (names.length === 0 || names.includes(initialisingMarker)) return false;
  if (!names.includes("PG_VERSION")) {
    throw invalid(
      `directory ${directory} is neither empty nor a PostgreSQL data directory (it holds ${names.slice(0, 3).join(", ")}` +
        `${names.length > 3 ? ", …" : ""}). Name a new or empty one`,
    );
  }
  const found = readTrusted(join(directory, "PG_VERSION"), trustedOwners(directory)).trim();
  if (found !== majorVersion) {
    throw new LocalPostgresError(
      "StartFailed",
      `directory ${directory} was made by PostgreSQL ${found}, and this is PostgreSQL ${majorVersion}. Move the data ` +
        "with pg_dump and pg_restore into a new directory",
    );
  }
  return true;
}

/**
 * Fills an empty directory from the template. `isPersistent`: it must survive a power failure from
 * now on.
 */
export async function initialise(
  directory: string,
  template: string,
  identity: Identity | undefined,
  isPersistent: boolean,
): Promise<void> {
  const marker = join(directory, initialisingMarker);
  try {
    if (identity) takeOver(directory);
    rmSync(marker, { force: true });
    writeFileSync(marker, "", { flag: "wx" });
    removeContent(directory);
    copyTree(template, directory, { directoryMode: 0o700, fileMode: () => 0o600, owner: identity });
    if (isPersistent) await syncTree(directory);
    rmSync(marker);
  } catch (error) {
    removeContent(directory);
    rmSync(marker, { force: true }); // last: what is still there must stay recognisable as incomplete
    if (identity) lchownSync(directory, identity.uid, identity.gid);
    throw error;
  }
}

/**
 * While root fills it, no other user may put a link there for root to follow. Copying then changes
 * the owner to the server's user.
 */
function takeOver(directory: string): void {
  lchownSync(directory, 0, 0);
  chmodSync(directory, 0o700);
}

function removeContent(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (isServerRecord(name) || name === initialisingMarker) continue;
    rmSync(join(directory, name), { recursive: true, force: true });
  }
}

/**
 * Repairs owner and mode, which copying or unpacking a data directory as root tends to lose. In the
 * directory of an ordinary user root changes no owner, because the user could have put a link
 * there.
 */
export function repairOwnership(directory: string, identity: Identity | undefined): void {
  const { uid } = statSync(directory);
  if (identity && (uid === 0 || isServerUser(uid))) changeOwner(directory, identity);
  if ((statSync(directory).mode & 0o077) !== 0) chmodSync(directory, 0o700);
}
