/**
 * BullMQ on Redis, which the orchestrator starts with an append-only file that is written out every
 * second.
 */

import { createRedisBackend, withBackend } from "bullmq";
import { bullmqMeasures } from "./bullmq-measures.ts";
import { contend } from "./program.ts";

contend(
  bullmqMeasures({
    classes: withBackend(createRedisBackend),
    connectionOf: ({ serviceUrl }) => ({ url: serviceUrl, maxRetriesPerRequest: null }),
  }),
);
