/**
 * The headers by which a receiver knows a delivery, in the form of Standard Webhooks: an id that stays
 * the same when it is tried again, the time of this try, and an HMAC over both and the body. A second HMAC
 * covers the topic too: it is what `verifyDelivery` checks.
 */

import { createHmac } from "node:crypto";
import {
  deliveryHeaders,
  deliveryKey,
  type SignedDelivery,
  signedPrefix,
  signedTopicPrefix,
} from "pawl/engine";

export function webhookHeaders(
  delivery: SignedDelivery & { readonly body: string },
  secret: string | null,
): Record<string, string> {
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
