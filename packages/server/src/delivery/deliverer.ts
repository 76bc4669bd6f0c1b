/**
 * The worker that sends deliveries (`delivery.ts`). The server starts it when it listens, and stops
 * it before it closes the database.
 */

import { type Logger, serve, type Worker } from "pawl";
import type { TopicStore } from "pawl/engine";
import { deliveryJob, type DeliverySettings } from "./delivery.js";

const concurrency = 20;

export interface DelivererOptions {
  readonly url: string;
  readonly schema: string;
  readonly store: Pick<TopicStore, "subscriptionTarget">;
  readonly settings: DeliverySettings;
  readonly logger: Logger;
}

export function startDeliverer({ url, schema, store, settings, logger }: DelivererOptions): Worker {
  const delivery = deliveryJob(store, settings);
  return serve([delivery], {
    url,
    schema,
    queues: { [delivery.queue]: concurrency },
    // The server itself deletes runs past their retention.
    sweepInterval: false,
    // A failed delivery has no frame of the user's code.
    recordStacks: false,
    logger,
  });
}
