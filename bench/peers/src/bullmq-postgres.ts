/**
 * BullMQ on Postgres (docs.bullmq.io/guide/postgresql), by its own backend, with 25 connections
 * instead of 10 for each queue and worker, since 100 jobs complete at a time.
 */

import { createPostgresBackend, withBackend } from "bullmq";
import { bullmqMeasures } from "./bullmq-measures.ts";
import { contend } from "./program.ts";

contend(
  bullmqMeasures({
    classes: withBackend(createPostgresBackend),
    connectionOf: ({ databaseUrl }) => ({ connectionString: databaseUrl, max: 25, migrate: true }),
  }),
);
