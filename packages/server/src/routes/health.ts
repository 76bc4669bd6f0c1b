/** Whether this process runs, and whether it can serve. */

import type { App } from "../app.js";
import type { Parts } from "../parts.js";

export function healthRoutes(app: App, { pawl }: Parts): void {
  app.get("/healthz", { config: { scope: "open" } }, async () => ({ status: "ok" }));
  app.get("/readyz", { config: { scope: "open" } }, async (_request, reply) => {
    try {
      await pawl.limits.list();
      return { status: "ready" };
    } catch {
      return reply.code(503).send({ status: "unavailable" });
    }
  });
}
