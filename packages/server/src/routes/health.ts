/** Whether this process runs, and whether it can serve. */

import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Parts } from "../backend/backend.js";
import { Readiness } from "../backend/readiness.js";
import { strict } from "../http/schemas.js";

const status = strict({ status: Type.String() });

export function healthRoutes(app: App, { probe, closing }: Parts): void {
  const readiness = new Readiness(() => probe.ping());
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
      // While it closes, balancers are to send their calls elsewhere.
      if (!closing.aborted && (await readiness.isReady())) return { status: "ready" };
      return reply.code(503).send({ status: "unavailable" });
    },
  );
}
