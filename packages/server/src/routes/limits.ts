/** Limits (rates, and runs at once): list them, and set one for all workers. */

import type { Limit, LimitOptions } from "pawl";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Backend } from "../backend/backend.js";
import { answers, nullable, strict } from "../http/schemas.js";

const limitSchema = Type.Unsafe<Limit>(
  strict(
    {
      name: Type.String(),
      allowed: nullable(Type.Number()),
      periodMs: nullable(Type.Integer()),
      burst: nullable(Type.Number()),
      concurrent: nullable(Type.Integer()),
    },
    { title: "Limit", description: "A rate, or concurrent, or both; null: it has none" },
  ),
);

const limitBody = Type.Unsafe<LimitOptions>(
  strict({
    allowed: Type.Optional(Type.Number({ description: "Tokens per period" })),
    period: Type.Optional(
      Type.Union([Type.Number(), Type.String()], { description: 'Milliseconds, or a text such as "1s"' }),
    ),
    burst: Type.Optional(
      Type.Number({ description: "How many tokens may accumulate. Default: allowed, at least 1" }),
    ),
    concurrent: Type.Optional(
      Type.Integer({ description: "How many runs execute at once; of each key, if they name a key" }),
    ),
  }),
);

export function limitRoutes(app: App, { pawl }: Backend): void {
  app.get(
    "/v1/limits",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "listLimits",
        summary: "List the limits",
        tags: ["limits"],
        response: answers({ 200: strict({ limits: Type.Array(limitSchema) }) }),
      },
    },
    async ({ caller }) => {
      const limits = await pawl.limits.list();
      return { limits: limits.filter(({ name }) => caller.allows({ name, queue: null })) };
    },
  );

  app.put(
    "/v1/limits/:name",
    {
      config: { scope: "admin", prefixes: "checked" },
      schema: {
        operationId: "setLimit",
        summary: "Set a limit",
        description:
          "A rate (allowed and period), concurrent, or both. For all workers, at once; the last writer wins.",
        tags: ["limits"],
        params: strict({ name: Type.String({ description: "The name of the limit" }) }),
        body: limitBody,
        response: answers({ 200: limitSchema }),
      },
    },
    async (request) => {
      const { name } = request.params;
      request.caller.require({ name, queue: null });
      await pawl.limits.set(name, request.body);
      const limits = await pawl.limits.list();
      return limits.find((limit) => limit.name === name)!;
    },
  );
}
