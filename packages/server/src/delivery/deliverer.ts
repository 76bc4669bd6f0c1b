/** The worker of a server that carries out deliveries (`delivery.ts`); begins when the server listens, ends before its database does. */

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
    // The server sees to retention itself.
    sweepInterval: false,
    logger,
  });
}
