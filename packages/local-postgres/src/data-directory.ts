/**
 * Brings a data directory into the state that PostgreSQL wants: initialised, owned by the server's user, private. A
 * directory that holds anything else is refused untouched. An initialisation that was cut short is recognised by its
 * marker and begun again.
 */
import { chmodSync, lstatSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isServerRecord } from "./claim.js";
import { changeOwner, copyTree, syncTree } from "./copy-tree.js";
import { LocalPostgresError, systemCodeOf } from "./errors.js";
import type { Identity } from "./identity.js";
import { invalid } from "./options.js";

const initialisingMarker = "pawl-initialising";

/** Whether the directory holds a database cluster that this version can run. Changes nothing. */
export function isInitialised(directory: string, majorVersion: string): boolean {
  const names = listDirectory(directory).filter((name) => !isServerRecord(name));
  if (names.length === 0 || names.includes(initialisingMarker)) return false;
  if (!names.includes("PG_VERSION")) {
    throw invalid(
      `directory ${directory} is neither empty nor a PostgreSQL data directory (it holds ${names.slice(0, 3).join(", ")}` +
        `${names.length > 3 ? ", …" : ""}). Name a new or empty one`,
    );
  }
  const found = readFileSync(join(directory, "PG_VERSION"), "utf8").trim();
  if (found !== majorVersion) {
    throw new LocalPostgresError(
      "StartFailed",
      `directory ${directory} was made by PostgreSQL ${found}, and this is PostgreSQL ${majorVersion}. Move the data ` +
        "with pg_dump and pg_restore into a new directory",
    );
  }
  return true;
}

function listDirectory(directory: string): string[] {
  try {
    const uid = process.getuid?.() ?? 0;
    const owner = statSync(directory).uid;
    if (uid !== 0 && owner !== uid) throw foreignOwner(directory, owner);
    return readdirSync(directory);
  } catch (error) {
    if (systemCodeOf(error) === "EACCES") throw foreignOwner(directory, lstatSync(directory).uid);
    throw error;
  }
}

function foreignOwner(directory: string, owner: number): LocalPostgresError {
  return new LocalPostgresError(
    "StartFailed",
    `directory ${directory} belongs to user id ${owner}, not to you (${process.getuid?.()}), and PostgreSQL runs only ` +
      "on its owner's directory. Run as that user, change the owner (chown -R), or name another directory",
  );
}

/** Fills an empty directory from the template. `isPersistent`: it must survive a power failure from now on. */
export async function initialise(
  directory: string,
  template: string,
  identity: Identity | undefined,
  isPersistent: boolean,
): Promise<void> {
  const marker = join(directory, initialisingMarker);
  try {
    writeFileSync(marker, "");
    removeContent(directory);
    copyTree(template, directory, { directoryMode: 0o700, fileMode: () => 0o600, owner: identity });
    if (isPersistent) await syncTree(directory);
    rmSync(marker);
  } catch (error) {
    removeContent(directory);
    rmSync(marker, { force: true }); // last: what is still there must stay recognisable as incomplete
    throw error;
  }
}

function removeContent(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (isServerRecord(name) || name === initialisingMarker) continue;
    rmSync(join(directory, name), { recursive: true, force: true });
  }
}

/** Puts right what copying or unpacking a data directory (as root) tends to lose: its owner and its privacy. */
export function repairOwnership(directory: string, identity: Identity | undefined): void {
  if (identity) changeOwner(directory, identity);
  if ((statSync(directory).mode & 0o077) !== 0) chmodSync(directory, 0o700);
}
