/**
 * `pawl-delivery`: the job that posts a publication to an http subscription. Servers serve it. Its
 * input has only the id of the subscription: the job reads the URL and the secret when it runs, so
 * that no run contains them and a deleted subscription gets nothing more. A receiver that is down,
 * slow or busy is retried for about ten hours; a receiver that refuses is not.
 */

import { type Job, job, type Json, NonRetryable } from "pawl";
import { signDelivery, type TopicStore, values } from "pawl/engine";
import { AddressRefused, post, type Resolve } from "./post.js";
import type { IsAllowed } from "./targets.js";

export interface DeliverySettings {
  readonly isAllowed: IsAllowed;
  /** For one attempt, from the DNS lookup to the answer. */
  readonly timeoutMs: number;
  readonly resolve?: Resolve | undefined;
  /** How long to wait after the failed attempt, counted from 0. */
  readonly backoffMs?: ((attempt: number) => number) | undefined;
}

interface Delivery {
  readonly subscription: string;
  readonly topic: string;
  readonly body: Json;
}

const maxAttempts = 10;
const firstBackoffMs = 5_000;
const longestBackoffMs = 6 * 3_600_000;
/** Statuses by which a receiver asks for a retry. */
const retryStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

export function deliveryJob(
  store: Pick<TopicStore, "subscriptionTarget">,
  settings: DeliverySettings,
): Job<"pawl-delivery", Delivery, { status: number }> {
  const { isAllowed, timeoutMs, resolve, backoffMs = defaultBackoffMs } = settings;
  const delivery = job({
    name: "delivery",
    queue: "deliveries",
    retention: "7d",
    maxAttempts,
    backoff: backoffMs,
    run: async (ctx, { subscription, topic, body }: Delivery) => {
      const found = await store.subscriptionTarget(subscription);
      if (found === null || found.target.type !== "http") {
        throw new NonRetryable(`subscription ${subscription} was deleted`);
      }
      const text = JSON.stringify(body);
      const timestamp = String(Math.floor(Date.now() / 1_000));
      const headers = {
        "content-type": "application/json",
        "user-agent": "pawl",
        ...signDelivery({ id: ctx.runId, timestamp, topic, body: text }, found.secret),
      };
      const { url } = found.target;
      const { signal } = ctx;
      const status = await post({ url, headers, body: text, isAllowed, timeoutMs, signal, resolve }).catch(
        (error: unknown) => {
          if (error instanceof AddressRefused) throw new NonRetryable(error.message, { cause: error });
          throw error;
        },
      );
      if (status >= 200 && status < 300) return { status };
      if (status >= 500 || retryStatuses.has(status)) throw new Error(`the receiver answered ${status}`);
      throw new NonRetryable(
        status < 400
          ? `the receiver answered ${status}; deliveries do not follow redirects: subscribe the target URL`
          : `the receiver answered ${status}, which is not retried`,
      );
    },
  });
  return values.reserve(delivery);
}

/** 5 s, tripled each time, at most 6 h, with jitter. */
function defaultBackoffMs(attempt: number): number {
  return Math.min(firstBackoffMs * 3 ** attempt, longestBackoffMs) * (0.8 + Math.random() * 0.4);
}
