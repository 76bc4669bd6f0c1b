/** Whether this process runs, and whether it can serve. */

import type { App } from "../app.js";
import type { Parts } from "../parts.js";

export function healthRoutes(app: App, { pawl, closing }: Parts): void {
  const open = { config: { scope: "open" }, exposeHeadRoute: true } as const;
  app.get("/healthz", open, async () => ({ status: "ok" }));
  app.get("/readyz", open, async (_request, reply) => {
    try {
      // While it closes, balancers are to send their calls elsewhere.
      if (closing.aborted) throw new Error("closing");
      await pawl.limits.list();
      return { status: "ready" };
    } catch {
      return reply.code(503).send({ status: "unavailable" });
    }
  });
}
