/**
 * Defines which bytes of a delivery are signed, and with which key. The server signs and
 * `verifyDelivery` checks with this one file, so they agree. Pure; works in every runtime.
 */

import { fromBase64, toBytes } from "./bytes.js";
import { InvalidOption } from "./errors.js";

const base64Prefix = "whsec_";
const minKeyBytes = 24;
const maxSecretLength = 256;

/** The headers of a delivery. */
export const deliveryHeaders = {
  id: "webhook-id",
  timestamp: "webhook-timestamp",
  topic: "pawl-topic",
  /** Over id, timestamp and body, as Standard Webhooks defines it. */
  signature: "webhook-signature",
  /** Over the topic too. */
  topicSignature: "pawl-signature",
} as const;

/** The parts that are signed together with the body. The body follows them directly. */
export interface SignedDelivery {
  readonly id: string;
  /** Seconds since 1970, in decimal. */
  readonly timestamp: string;
  readonly topic: string;
}

/** The text that Standard Webhooks signs, up to the body. */
export function signedPrefix({ id, timestamp }: SignedDelivery): string {
  return `${id}.${timestamp}.`;
}

/**
 * The same text with the topic before it. No header contains a line break, and JSON cannot begin
 * like the part after it. So one signature never passes for the other.
 */
export function signedTopicPrefix(delivery: SignedDelivery): string {
  return `pawl-topic:${delivery.topic}\n${signedPrefix(delivery)}`;
}

/** Checks the secret of a subscription: it must be hard to guess. */
export function checkDeliverySecret(value: unknown, what: string): string {
  if (
    typeof value === "string" &&
    value.length <= maxSecretLength &&
    /^[\x21-\x7e]+$/.test(value) &&
    (keyBytes(value)?.length ?? 0) >= minKeyBytes
  ) {
    return value;
  }
  // The message does not show the value: it is a secret.
  throw new InvalidOption(
    `${what} must be ${base64Prefix} and the base64 of at least ${minKeyBytes} random bytes, or a text of ${minKeyBytes} to ` +
      `${maxSecretLength} printable ASCII characters; make one with: echo ${base64Prefix}$(openssl rand -base64 32)`,
  );
}

/** The key of a checked secret: the base64 after `whsec_`, or the text itself. */
export function deliveryKey(secret: string): Uint8Array<ArrayBuffer> {
  return keyBytes(secret)!;
}

function keyBytes(secret: string): Uint8Array<ArrayBuffer> | undefined {
  return secret.startsWith(base64Prefix) ? fromBase64(secret.slice(base64Prefix.length)) : toBytes(secret);
}
