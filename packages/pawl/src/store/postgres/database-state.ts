/**
 * Reads and changes the state of a whole database: whether it is held, and whether it is a copy.
 * Each call opens its own connection, because people make these calls only now and then. `fork` and
 * `hold` use this file; workers ask through their store.
 */

import type { Actor, DatabaseState } from "../store.js";
import { type Address, openClient, type Opened, types } from "./database.js";
import { explain } from "./database-errors.js";
import { actorText, quoteName } from "./literals.js";
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

/** Returns whether the call changed anything. If so, and with `by`, the action log gets a line. */
export async function setHeld(address: Address, isHeld: boolean, by?: Actor): Promise<boolean> {
  const values = [actorText(by), isHeld];
  return (await callOnce<{ set_held_as: boolean }>(address, "set_held_as", values)).set_held_as;
}

/** Marks a copy of this name to be held from its first moment on. Null removes the mark. */
export async function setHeldCopy(address: Address, name: string | null): Promise<void> {
  await callOnce(address, "set_held_copy", [name]);
}

/** Returns the previous state. */
export async function adoptDatabase(address: Address): Promise<{ wasHeld: boolean; wasCopy: boolean }> {
  const row = await callOnce<{ was_held: boolean; was_copy: boolean }>(address, "adopt", []);
  return { wasHeld: row.was_held, wasCopy: row.was_copy };
}

/**
 * Calls one function that returns one row, on a connection of its own. Requires the schema version
 * that this release needs.
 */
async function callOnce<Row>(address: Address, name: string, values: readonly unknown[]): Promise<Row> {
  let opened: Opened | undefined;
  try {
    opened = await openClient(address.url);
    const { client } = opened;
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
    await opened?.end();
  }
}
