/** Health checks for orchestrators and load balancers: is the process alive, and can it serve? */

import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Backend } from "../backend/backend.js";
import { Readiness } from "../backend/readiness.js";
import { strict } from "../http/schemas.js";

const status = strict({ status: Type.String() });

export function healthRoutes(app: App, { engine, closing }: Backend): void {
  const readiness = new Readiness(() => engine.ping());
  const open = { config: { scope: "open" }, exposeHeadRoute: true } as const;
  const schema = { tags: ["server"], security: [], response: { 200: status, 503: status } };
  app.get(
    "/healthz",
    { ...open, schema: { ...schema, operationId: "getHealth", summary: "Whether the process is alive" } },
    async () => ({ status: "ok" }),
  );
  app.get(
    "/readyz",
    {
      ...open,
      schema: { ...schema, operationId: "getReadiness", summary: "Whether the server can take requests" },
    },
    async (_request, reply) => {
      // While the server closes, load balancers should send requests elsewhere.
      if (!closing.aborted && (await readiness.isReady())) return { status: "ready" };
      return reply.code(503).send({ status: "unavailable" });
    },
  );
}
