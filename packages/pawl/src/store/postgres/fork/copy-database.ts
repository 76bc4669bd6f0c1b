/**
 * Copies a database on its server, by `create database … template …`, while others work in it.
 *
 * PostgreSQL copies only what nobody is connected to, and keeps new connections waiting while it does: the lock that
 * `create database` takes at its very beginning is one that every new connection needs. So the order is: begin to create, see that
 * lock granted, then end the connections that are there. Nothing that would have to be undone is written anywhere: when the copy fails,
 * or this process is killed, the lock goes with the statement, and whoever waited goes on. Called by `fork`.
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

/** Up to this size it is quicker to write the copy to the log than to wait for the checkpoints that copied files need. */
const logBytes = 32 * 1024 * 1024;
const lookMs = 5;

/** `before` is called when it is clear that the copy may be made, just before it is. */
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
  // Copied files begin with a checkpoint: what is written now, while everybody works, need not be written in the pause. A role that
  // must not only pauses longer.
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
  // If they cannot be ended, the server gives the copy up, and that is the error to tell.
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

/** Once nobody can come any more, ends the connections of those who are there, until the copy is made or has failed. */
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

/** Gives the copy what the original has beside its contents, and opens it; what cannot be completed is taken away again. */
async function complete(creator: pg.Client, source: Source, name: string): Promise<readonly string[]> {
  const copy = quoteName(name);
  try {
    const notes = await copySettings(creator, source, name);
    // Not before: without its grants the copy would be open to everybody.
    await creator.query(`alter database ${copy} allow_connections true`);
    return notes;
  } catch (error) {
    // If that fails too, what is left takes no connections, and a fork of the same name says so.
    await creator.query(`drop database if exists ${copy}`).catch(() => {});
    throw error;
  }
}
