/**
 * What is signed in a delivery to a URL, and with which key. The server signs with it, and
 * `verifyDelivery` checks with it, so that both mean the same bytes. Pure, for every runtime.
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
  /** Over id, timestamp and body, as Standard Webhooks has it. */
  signature: "webhook-signature",
  /** Over the topic too. */
  topicSignature: "pawl-signature",
} as const;

/** The signed texts stand before the body, without anything between. */
export interface SignedDelivery {
  readonly id: string;
  /** Seconds since 1970, in decimal. */
  readonly timestamp: string;
  readonly topic: string;
}

/** What Standard Webhooks signs, up to the body. */
export function signedPrefix({ id, timestamp }: SignedDelivery): string {
  return `${id}.${timestamp}.`;
}

/**
 * The same with the topic before it. The line break keeps both apart: no header has one, and what follows
 * it here begins with two numbers and dots, which is no JSON, so that neither passes for the other.
 */
export function signedTopicPrefix(delivery: SignedDelivery): string {
  return `pawl-topic:${delivery.topic}\n${signedPrefix(delivery)}`;
}

/** The secret of a subscription, if it is one that is hard to guess. */
export function checkDeliverySecret(value: unknown, what: string): string {
  if (
    typeof value === "string" &&
    value.length <= maxSecretLength &&
    /^[\x21-\x7e]+$/.test(value) &&
    (keyBytes(value)?.length ?? 0) >= minKeyBytes
  ) {
    return value;
  }
  // Not shown: it is a secret.
  throw new InvalidOption(
    `${what} must be ${base64Prefix} and the base64 of at least ${minKeyBytes} random bytes, or a text of ${minKeyBytes} to ` +
      `${maxSecretLength} printable ASCII characters; make one with: echo ${base64Prefix}$(openssl rand -base64 32)`,
  );
}

/** The key that a checked secret means: what follows `whsec_` in base64, or the text itself. */
export function deliveryKey(secret: string): Uint8Array<ArrayBuffer> {
  return keyBytes(secret)!;
}

function keyBytes(secret: string): Uint8Array<ArrayBuffer> | undefined {
  return secret.startsWith(base64Prefix) ? fromBase64(secret.slice(base64Prefix.length)) : toBytes(secret);
}
