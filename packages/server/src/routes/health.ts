/** Whether this process runs, and whether it can serve. */

import { Type } from "typebox";
import type { App } from "../app.js";
import type { Parts } from "../parts.js";
import { strict } from "../schemas.js";

const status = strict({ status: Type.String() });

export function healthRoutes(app: App, { pawl, closing }: Parts): void {
  const open = { config: { scope: "open" }, exposeHeadRoute: true } as const;
  const schema = { tags: ["server"], security: [], response: { 200: status, 503: status } };
  app.get(
    "/healthz",
    { ...open, schema: { ...schema, operationId: "getHealth", summary: "Whether the process runs" } },
    async () => ({ status: "ok" }),
  );
  app.get(
    "/readyz",
    { ...open, schema: { ...schema, operationId: "getReadiness", summary: "Whether it can serve" } },
    async (_request, reply) => {
      try {
        // While it closes, balancers are to send their calls elsewhere.
        if (closing.aborted) throw new Error("closing");
        await pawl.limits.list();
        return { status: "ready" };
      } catch {
        return reply.code(503).send({ status: "unavailable" });
      }
    },
  );
}
