/**
 * The headers by which a receiver knows a delivery, in the form of Standard Webhooks: an id that stays the same when it is tried
 * again, the time of this try, and an HMAC over both and the body.
 */

import { createHmac } from "node:crypto";

export interface Signed {
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: string;
}

export function webhookHeaders(
  { id, timestampSeconds, body }: Signed,
  secret: string | null,
): Record<string, string> {
  const headers = { "webhook-id": id, "webhook-timestamp": String(timestampSeconds) };
  if (secret === null) return headers;
  const signature = createHmac("sha256", keyOf(secret))
    .update(`${id}.${timestampSeconds}.${body}`)
    .digest("base64");
  return { ...headers, "webhook-signature": `v1,${signature}` };
}

/** `whsec_` says that what follows is the key in base64; any other text is the key itself. */
function keyOf(secret: string): Buffer {
  const prefix = "whsec_";
  return secret.startsWith(prefix)
    ? Buffer.from(secret.slice(prefix.length), "base64")
    : Buffer.from(secret, "utf8");
}
