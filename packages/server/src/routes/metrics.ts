/**
 * `/metrics`, for Prometheus: the counters of this process, and gauges of the queues, read from the
 * database at most every ten seconds. Workers in other processes expose their own metrics.
 */

import { Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { answers } from "../http/schemas.js";

export function metricsRoutes(app: App, { engine }: Backend, isOpen: boolean): void {
  app.get(
    "/metrics",
    {
      config: { scope: isOpen ? "open" : "read", prefixes: "checked" },
      schema: {
        operationId: "metrics",
        summary: "Metrics for Prometheus",
        description:
          "The text format 0.0.4. With PAWL_METRICS_OPEN=1 it needs no token. A token with prefixes gets the metrics of its names and queues.",
        tags: ["server"],
        response: answers({
          200: Type.Unsafe<Buffer>({ type: "string", description: "All metrics as text" }),
        }),
      },
    },
    // As bytes: the text is no JSON.
    async ({ caller }, reply) => {
      const text = await engine.metrics.text();
      return reply.type(engine.metrics.contentType).send(Buffer.from(visibleMetrics(text, caller)));
    },
  );
}

/** They concern no name: a token that is limited sees them too. */
const common = /^pawl_workers /;

/** A token with prefixes sees the metrics of its definitions, queues and limits. */
function visibleMetrics(text: string, caller: Caller): string {
  if (!caller.hasPrefixes) return text;
  const lines = text.split("\n").filter((line) => {
    if (line === "" || line.startsWith("#") || common.test(line)) return true;
    const labels = new Map([...line.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, a, b]) => [a, b]));
    const name = labels.get("workflow") ?? labels.get("limit");
    const queue = labels.get("queue");
    if (name === undefined && queue === undefined) return false;
    return caller.allows({ name: name ?? null, queue: queue ?? null });
  });
  return lines.join("\n");
}
