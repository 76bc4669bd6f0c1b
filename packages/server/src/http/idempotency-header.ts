/**
 * Reads the header `idempotency-key`: UTF-8, or `utf-8''` and the percent-encoded text (RFC 8187)
 * for clients whose headers are ASCII only. Used by the routes that start and signal runs.
 */

import { isUtf8 } from "node:buffer";
import { InvalidOption } from "pawl";

const prefix = /^utf-8''/i;

export function idempotencyKeyOf(headers: {
  readonly "idempotency-key"?: string | undefined;
}): string | undefined {
  const given = headers["idempotency-key"];
  if (given === undefined) return undefined;
  if (!prefix.test(given)) {
    // Node gives one character for each byte of a header.
    const bytes = Buffer.from(given, "latin1");
    return isUtf8(bytes) ? bytes.toString() : given;
  }
  try {
    return decodeURIComponent(given.replace(prefix, ""));
  } catch {
    throw new InvalidOption("the header idempotency-key must be percent-encoded after utf-8''");
  }
}
