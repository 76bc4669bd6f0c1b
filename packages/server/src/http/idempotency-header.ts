/** The header `idempotency-key`: bytes in UTF-8, or, where headers take ASCII alone, `utf-8''` and the text percent-encoded (RFC 8187). */

import { isUtf8 } from "node:buffer";
import { InvalidOption } from "pawl";

const prefix = /^utf-8''/i;

export function keyOf(headers: { readonly "idempotency-key"?: string | undefined }): string | undefined {
  const given = headers["idempotency-key"];
  if (given === undefined) return undefined;
  if (!prefix.test(given)) {
    // As the parser of headers gives it: a character for each byte.
    const bytes = Buffer.from(given, "latin1");
    return isUtf8(bytes) ? bytes.toString() : given;
  }
  try {
    return decodeURIComponent(given.replace(prefix, ""));
  } catch {
    throw new InvalidOption("the header idempotency-key must be percent-encoded after utf-8''");
  }
}
