/**
 * Where a page of a report ends, as an opaque cursor: the values of its last row in base64url. Used by
 * `postgres-reports.ts`.
 */

import { InvalidOption } from "../../values/errors.js";
import { show } from "../../values/show.js";

export function writePosition(values: readonly (string | null)[]): string {
  return Buffer.from(JSON.stringify(values)).toString("base64url");
}

/** Reads a cursor; none (null) is the first page. An `id` is digits. */
export function readPosition(cursor: string | null, kinds: readonly ("text" | "id")[]): string[] {
  if (cursor === null) return [];
  const values = parse(cursor);
  const isRight = (value: unknown, index: number): value is string =>
    typeof value === "string" &&
    !value.includes("\0") &&
    (kinds[index] === "text" || /^\d{1,18}$/.test(value));
  if (Array.isArray(values) && values.length === kinds.length && values.every(isRight)) return values;
  throw new InvalidOption(`cursor must be the cursor of the previous page, not ${show(cursor)}`);
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch {
    return null;
  }
}
