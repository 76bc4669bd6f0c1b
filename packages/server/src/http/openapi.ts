/**
 * The API as an OpenAPI 3.1 document, made of the schemas of its routes. A schema with a title
 * becomes a named component (`openapi-components.ts`). Called before the first route is added.
 */

import swagger from "@fastify/swagger";
import type { FastifySchema } from "fastify";
import { values } from "pawl/engine";
import { Type } from "typebox";
import type { App } from "./app.js";
import { nameComponents } from "./openapi-components.js";
import { answers } from "./schemas.js";

const description = `Durable runs on PostgreSQL. Every answer with a status of 400 or more is a problem document (RFC 9457) with the \`code\` of
the library's error. A 2xx means committed.`;

export async function documentApi(app: App, basePath: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Pawl", version: "1", description },
      ...(basePath === "" ? {} : { servers: [{ url: basePath }] }),
      components: {
        securitySchemes: {
          token: {
            type: "http",
            scheme: "bearer",
            description: "Not needed by local callers of a server without tokens",
          },
        },
      },
      security: [{ token: [] }],
    },
    transform: ({ schema, url, route }) => ({
      schema: complete(schema, [route.method].flat()[0] ?? "GET", url),
      url,
    }),
    transformObject: (document) =>
      nameComponents("openapiObject" in document ? document.openapiObject : document.swaggerObject),
  });
  app.get(
    "/v1/openapi.json",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "getOpenApi",
        summary: "This document",
        tags: ["server"],
        response: { 200: Type.Object({}, { description: "The document" }) },
      },
    },
    () => app.swagger(),
  );
}

/**
 * Adds what a route does not have: an id and a summary from its path, names of its answers, and
 * problems as answers.
 */
function complete(schema: FastifySchema | undefined, method: string, url: string): FastifySchema {
  const words = url.split(/[^a-z]+/i).filter((word) => word !== "" && word !== "v");
  const id = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
  const given = { ...(schema?.response as object | undefined) };
  const succeeds = Object.keys(given).some((status) => status.startsWith("2"));
  const { operationId = `${method.toLowerCase()}${id}` } = (schema ?? {}) as { operationId?: string };
  const named = Object.entries(given).map(([status, answer]) => [status, nameAnswer(answer, operationId)]);
  return {
    summary: words.join(" "),
    ...schema,
    operationId,
    response: answers(
      succeeds ? Object.fromEntries(named) : { 200: Type.Unknown({ description: "Done" }), ...given },
    ),
  };
}

/** An answer without a title gets that of its operation, so that generated code has a type for it. */
function nameAnswer(answer: unknown, operationId: string): unknown {
  if (!values.isObject(answer) || "content" in answer || "title" in answer) return answer;
  return { ...answer, title: `${operationId.slice(0, 1).toUpperCase()}${operationId.slice(1)}Answer` };
}
