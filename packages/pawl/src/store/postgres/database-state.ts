/**
 * The state of a database as a whole: whether it is held, whether it is a copy, and the calls that change that. Each opens a
 * connection for itself: they are made by people, now and then. Used by `fork` and `hold`; workers ask through their store.
 */

import pg from "pg";
import type { DatabaseState } from "../store.js";
import { type Address, connectionOptions, types } from "./database.js";
import { explain } from "./database-errors.js";
import { quoteName } from "./literals.js";
import { explainVersion, readVersion } from "./version.js";

export interface DatabaseStateRow {
  readonly identity: string;
  readonly is_held: boolean;
  readonly is_copy: boolean;
}

export function toDatabaseState({ identity, is_held, is_copy }: DatabaseStateRow): DatabaseState {
  return { identity, isHeld: is_held, isCopy: is_copy };
}

export async function readState(address: Address): Promise<DatabaseState> {
  return toDatabaseState(await callOnce<DatabaseStateRow>(address, "database_state", []));
}

/** Answers whether that changed anything. */
export async function setHeld(address: Address, isHeld: boolean): Promise<boolean> {
  const { set_held } = await callOnce<{ set_held: boolean }>(address, "set_held", [isHeld]);
  return set_held;
}

/** A copy of this name is to be held from its first moment on; null: none. */
export async function setHeldCopy(address: Address, name: string | null): Promise<void> {
  await callOnce(address, "set_held_copy", [name]);
}

/** Answers what it was before. */
export async function adoptDatabase(address: Address): Promise<{ wasHeld: boolean; wasCopy: boolean }> {
  const row = await callOnce<{ was_held: boolean; was_copy: boolean }>(address, "adopt", []);
  return { wasHeld: row.was_held, wasCopy: row.was_copy };
}

/** Calls one function that answers one row, on a connection of its own; the schema must be the one this release needs. */
async function callOnce<Row>(address: Address, name: string, values: readonly unknown[]): Promise<Row> {
  const client = new pg.Client(connectionOptions(address.url));
  // A connection lost between two statements shows in the next one.
  client.on("error", () => {});
  try {
    await client.connect();
    const problem = explainVersion(
      await readVersion((text) => client.query({ text, types }), address.schema),
      address.schema,
    );
    if (problem !== null) throw problem;
    const text = `select * from ${quoteName(address.schema)}.${name}(${values.map((_, index) => `$${index + 1}`).join(",")})`;
    const { rows } = await client.query({ text, values: [...values], types });
    return rows[0] as Row;
  } catch (error) {
    throw explain(error, address);
  } finally {
    await client.end().catch(() => {});
  }
}
