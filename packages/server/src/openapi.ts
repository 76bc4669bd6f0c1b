/** The API as an OpenAPI 3.1 document, made of the schemas of its routes. To be called before the first route is added. */

import swagger from "@fastify/swagger";
import type { App } from "./app.js";

const description = `Durable runs on PostgreSQL. Every answer with a status of 400 or more is a problem document (RFC 9457) whose \`code\` is that of
the library's error. A 2xx means committed.`;

export async function documentApi(app: App): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Pawl", version: "1", description },
      components: {
        securitySchemes: {
          token: { type: "http", scheme: "bearer", description: "Not needed on loopback without tokens" },
        },
      },
      security: [{ token: [] }],
    },
  });
  app.get(
    "/v1/openapi.json",
    {
      config: { scope: "read" },
      schema: { operationId: "getOpenApi", summary: "This document", tags: ["server"] },
    },
    () => app.swagger(),
  );
}
