/**
 * Builds PostgreSQL literals: quoted names and array texts. Arrays carry whole batches through
 * `unnest`: one array per column, or one array of records. This file builds them directly, without
 * the driver's generic conversion. Only the store calls it.
 */

import type { Actor } from "../client-store.js";

/** Quotes an identifier so that it is safe in SQL text. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a text literal so that it is safe in SQL text. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The caller as `note_action` reads it; null: no line in the action log. */
export function actorText(by: Actor | null | undefined): string | null {
  return by ? JSON.stringify(by) : null;
}

type Item = string | number | boolean | Date | Uint8Array | null;

/**
 * Returns the array of one column of a batch. Returns null if every item is null; the functions
 * treat both alike.
 */
export function column<T>(rows: readonly T[], pick: (row: T) => Item): string | null {
  let texts: string[] | null = null;
  let last: Item = null;
  let text = "NULL";
  for (let index = 0; index < rows.length; index++) {
    const item = pick(rows[index]!);
    if (item !== last) {
      // Many columns have one value for all rows: it is encoded once.
      last = item;
      text = item === null ? "NULL" : encode(item);
      texts ??= Array<string>(index).fill("NULL");
    }
    texts?.push(text);
  }
  return texts === null ? null : `{${texts.join()}}`;
}

/** Returns the array of records of a batch: each row's fields, in the order of the type. */
export function records<T>(rows: readonly T[], fields: (row: T) => readonly Item[]): string {
  return `{${rows.map((row) => quoteText(record(fields(row)))).join()}}`;
}

/** Returns one record: its fields, in the order of the type. */
export function record(fields: readonly Item[]): string {
  return `(${fields.map((field) => (field === null ? "" : encodeField(field))).join()})`;
}

function encodeField(item: NonNullable<Item>): string {
  if (typeof item === "string") return plain.test(item) ? item : quoteText(item);
  return encode(item);
}

/** Texts that need no quotes inside a record. */
const plain = /^[\w.:@/+-]+$/;

function encode(item: NonNullable<Item>): string {
  if (typeof item === "string") return quoteText(item);
  if (typeof item === "number" || typeof item === "boolean") return String(item);
  if (item instanceof Date) return `"${item.toISOString()}"`;
  return `"\\\\x${Buffer.from(item.buffer, item.byteOffset, item.byteLength).toString("hex")}"`;
}

/** Twice as fast as one replacement by a pattern. Most texts are JSON without a backslash. */
function quoteText(text: string): string {
  const escaped = text.includes("\\") ? text.replaceAll("\\", "\\\\") : text;
  return `"${escaped.replaceAll('"', '\\"')}"`;
}
