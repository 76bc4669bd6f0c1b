/**
 * `/metrics`, for Prometheus: the counters of this process, and gauges of the queues, read from the
 * database at most every ten seconds. Workers in other processes expose their own metrics.
 */

import { Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import { answers } from "../http/schemas.js";

export function metricsRoutes(app: App, { engine }: Backend, isOpen: boolean): void {
  app.get(
    "/metrics",
    {
      config: { scope: isOpen ? "open" : "read" },
      schema: {
        operationId: "metrics",
        summary: "Metrics for Prometheus",
        description: "The text format 0.0.4. With PAWL_METRICS_OPEN=1 it needs no token.",
        tags: ["server"],
        response: answers({
          200: Type.Unsafe<Buffer>({ type: "string", description: "All metrics as text" }),
        }),
      },
    },
    // As bytes: the text is no JSON.
    async (_request, reply) =>
      reply.type(engine.metrics.contentType).send(Buffer.from(await engine.metrics.text())),
  );
}
