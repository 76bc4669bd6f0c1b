/**
 * Access rules. The socket directory is private, so connections from there need no password. Every
 * user of the machine can reach TCP on 127.0.0.1, so it needs one. All other connections are
 * refused; the pg_hba.conf of the data directory is ignored. Called by `server.ts`.
 */
import { randomBytes } from "node:crypto";
import { closeSync, fchownSync, lstatSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { isStandby } from "./database.js";
import type { Identity } from "./identity.js";
import type { Postmaster } from "./postmaster.js";
import { readTrusted, trustedOwners } from "./trust.js";
import { queryOverSocket, quoteLiteral } from "./wire-query.js";

const rules = `local all all trust
local replication all trust
host all all 127.0.0.1/32 scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
`;

/** Answers with the path for the setting `hba_file`. */
export function writeAccessRules(runtimeDirectory: string, identity: Identity | undefined): string {
  const file = join(runtimeDirectory, "pg_hba.conf");
  rmSync(file, { force: true });
  writePrivate(file, rules, identity);
  return file;
}

/**
 * Makes a new file and changes its owner by descriptor, so that nobody can replace it meanwhile.
 */
function writePrivate(file: string, content: string, identity: Identity | undefined): void {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeSync(descriptor, content);
    if (identity) fchownSync(descriptor, identity.uid, identity.gid);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Sets the password of the superuser. The data directory keeps it, so that the URL stays the same.
 * A server without a port gets one too: a standby copied from it may have a port, and cannot set
 * its own.
 */
export async function ensurePassword(postmaster: Postmaster): Promise<string> {
  const { dataDirectory, identity, listensOnTcp } = postmaster.plan;
  const file = join(dataDirectory, "pawl-password");
  const isKept = lstatSync(file, { throwIfNoEntry: false })?.isFile() === true;
  const password = isKept
    ? readTrusted(file, trustedOwners(dataDirectory))
    : randomBytes(24).toString("base64url");
  if ((isKept && !listensOnTcp) || (await isStandby(postmaster))) return password;
  const statement = `alter role postgres password ${quoteLiteral(password)}`;
  await queryOverSocket(postmaster.socketPath, "postgres", statement);
  if (!isKept) {
    rmSync(file, { force: true });
    writePrivate(file, password, identity);
  }
  return password;
}
