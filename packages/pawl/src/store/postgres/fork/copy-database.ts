/**
 * Copies a database on its server, by `create database … template …`, while others work in it.
 *
 * PostgreSQL copies a database only while nobody is connected to it, and makes new connections wait
 * meanwhile. `create database` takes a lock at its very beginning, and every new connection needs
 * that lock. So the order is: begin to create, see that lock granted, then end the existing
 * connections. This code writes nothing that it would have to undo. If the copy fails, or this
 * process is killed, the server releases the lock with the statement, and waiting connections
 * continue. `fork` calls it.
 */

import type pg from "pg";
import type { CopyMethod } from "../../store.js";
import { copySettings } from "./copy-settings.js";
import { examine, isInTheWay, type Source, stillInUse } from "./copy-source.js";
import { databaseName } from "../database.js";
import { explain } from "../database-errors.js";
import { quoteName } from "../literals.js";
import { openMaintenance } from "../maintenance.js";

interface Copied {
  readonly pausedMs: number;
  readonly method: CopyMethod;
  /** Settings that could not be copied. */
  readonly notes: readonly string[];
}

/**
 * Up to this size, writing the copy to the log is quicker than waiting for the checkpoints that
 * copied files need.
 */
const logBytes = 32 * 1024 * 1024;
const lookMs = 5;

/** Calls `before` once it knows that it may make the copy, just before it makes it. */
export async function copyDatabase(
  url: string,
  name: string,
  { before }: { before: () => Promise<void> },
): Promise<Copied> {
  const clients: pg.Client[] = [];
  try {
    const creator = await openMaintenance(url);
    clients.push(creator);
    const source = await examine(creator, databaseName(url), name);
    const ender = await openMaintenance(url);
    clients.push(ender);
    await before();
    const created = await create(creator, ender, source, name);
    return { ...created, notes: await complete(creator, source, name) };
  } catch (error) {
    throw explain(error, { url, schema: "pawl" });
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  }
}

async function create(
  creator: pg.Client,
  ender: pg.Client,
  source: Source,
  name: string,
): Promise<Omit<Copied, "notes">> {
  const { version, bytes } = source;
  const isSmall = bytes !== null && bytes <= logBytes;
  // A file copy begins with a checkpoint. This early checkpoint writes data while everybody works,
  // so the pause need not. Without the right to it, the role only causes a longer pause.
  if (!isSmall) await creator.query("checkpoint").catch(() => {});
  const clones = !isSmall && version >= 180_000;
  const beganMs = performance.now();
  const took = (method: CopyMethod): Omit<Copied, "notes"> => ({
    method,
    pausedMs: performance.now() - beganMs,
  });
  if (clones) {
    try {
      await creator.query("set file_copy_method = clone");
      await createBy("file_copy", creator, ender, source, name);
      return took("clone");
    } catch (error) {
      if (isInTheWay(error)) throw error;
      // This platform, or this file system, cannot clone.
      await creator.query("set file_copy_method = copy");
    }
  }
  const method = isSmall ? "wal_log" : "file_copy";
  await createBy(method, creator, ender, source, name);
  return took(method);
}

async function createBy(
  strategy: "wal_log" | "file_copy",
  creator: pg.Client,
  ender: pg.Client,
  source: Source,
  name: string,
): Promise<void> {
  const creating = creator.query(
    `create database ${quoteName(name)} template ${quoteName(source.name)} owner ${quoteName(source.owner)}
      connection limit ${source.connectionLimit} allow_connections false strategy ${strategy}`,
  );
  let isCreating = true;
  // If Pawl cannot end the connections, the server abandons the copy. Report the server's error.
  const ending = endConnections(ender, source, () => isCreating).catch(() => {});
  try {
    await creating;
  } catch (error) {
    throw stillInUse(error, source) ?? error;
  } finally {
    isCreating = false;
    await ending;
  }
}

/**
 * Once the lock blocks new connections, ends the existing ones until the copy is made or has
 * failed.
 */
async function endConnections(
  ender: pg.Client,
  { oid, creatorPid }: Source,
  isCreating: () => boolean,
): Promise<void> {
  const end = `select pg_terminate_backend(a.pid) from pg_stat_activity a where a.datid = $1 and exists (
    select from pg_locks l where l.locktype = 'object' and l.classid = 'pg_database'::regclass and l.objid = $1
      and l.mode = 'ShareLock' and l.granted and l.pid = $2)`;
  while (isCreating()) {
    await ender.query(end, [oid, creatorPid]);
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

/**
 * Gives the copy the original's grants and settings, which are not part of its contents, and opens
 * it. Drops the copy if that fails.
 */
async function complete(creator: pg.Client, source: Source, name: string): Promise<readonly string[]> {
  const copy = quoteName(name);
  try {
    const notes = await copySettings(creator, source, name);
    // Not earlier: without its grants the copy would be open to everybody.
    await creator.query(`alter database ${copy} allow_connections true`);
    return notes;
  } catch (error) {
    // If the drop fails too, the remaining database takes no connections, and a fork of the same
    // name says so.
    await creator.query(`drop database if exists ${copy}`).catch(() => {});
    throw error;
  }
}
