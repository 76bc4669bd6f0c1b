/**
 * The headers of a delivery to a URL, in the form of Standard Webhooks: an id that stays the same
 * when the delivery is retried, the time of this attempt, and an HMAC over both and the body. A
 * second HMAC also covers the topic: `verifyDelivery` checks that one. Called by the server's
 * delivery job.
 */

import { createHmac } from "node:crypto";
import {
  deliveryHeaders,
  deliveryKey,
  type SignedDelivery,
  signedPrefix,
  signedTopicPrefix,
} from "../values/delivery-signature.js";

export interface Delivery extends SignedDelivery {
  /** The JSON that is sent. */
  readonly body: string;
}

/** `secret`: of the subscription; null: it has none, and the delivery is not signed. */
export function signDelivery(delivery: Delivery, secret: string | null): Record<string, string> {
  const { id, timestamp, topic, body } = delivery;
  const headers = {
    [deliveryHeaders.id]: id,
    [deliveryHeaders.timestamp]: timestamp,
    [deliveryHeaders.topic]: topic,
  };
  if (secret === null) return headers;
  const key = deliveryKey(secret);
  const sign = (prefix: string): string =>
    `v1,${createHmac("sha256", key).update(prefix).update(body).digest("base64")}`;
  return {
    ...headers,
    [deliveryHeaders.signature]: sign(signedPrefix(delivery)),
    [deliveryHeaders.topicSignature]: sign(signedTopicPrefix(delivery)),
  };
}
