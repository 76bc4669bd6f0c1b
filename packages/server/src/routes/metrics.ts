/**
 * `/metrics`, for Prometheus: what this process has counted, and what the database says about its queues, read at most every ten
 * seconds. Workers elsewhere expose their own.
 */

import { expositionType, Gauges, Metrics } from "pawl/engine";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Parts } from "../backend/backend.js";
import { answers } from "../http/schemas.js";

export function metricsRoutes(app: App, { store, events }: Parts, isOpen: boolean): void {
  const metrics = new Metrics(events);
  const gauges = new Gauges((most) => store.gauges(most));
  app.addHook("onClose", (_app, done) => {
    metrics.close();
    done();
  });
  app.get(
    "/metrics",
    {
      config: { scope: isOpen ? "open" : "read" },
      schema: {
        operationId: "metrics",
        summary: "Metrics for Prometheus",
        description: "The text format 0.0.4. With PAWL_METRICS_OPEN=1 it takes no token.",
        tags: ["server"],
        response: answers({ 200: Type.String({ description: "The text of all metrics" }) }),
      },
    },
    async (_request, reply) => {
      const text = metrics.text() + (await gauges.text());
      // As bytes: it is no JSON.
      return reply.type(expositionType).send(Buffer.from(text) as unknown as string);
    },
  );
}
