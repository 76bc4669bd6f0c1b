/** Who calls: the name and the rights of a token. The dashboard hides what they do not allow. */

import { Type } from "typebox";
import type { App, Scope } from "./app.js";
import { answers, nullable, oneOf, strict } from "./schemas.js";
import { allScopes } from "./tokens.js";

const prefixes = (description: string) => nullable(Type.Array(Type.String(), { description }));

const meSchema = strict(
  {
    name: nullable(Type.String({ description: "The name of the token; null: the server uses none" })),
    scopes: Type.Array(oneOf<Scope>(allScopes), { description: "With the scopes that they include" }),
    names: prefixes("Prefixes of the definitions and limits that the token reaches; null: all"),
    queues: prefixes("Prefixes of the queues that the token reaches; null: all"),
  },
  { title: "Me" },
);

export function meRoutes(app: App): void {
  app.get(
    "/v1/me",
    {
      config: { scope: "any", prefixes: "checked" },
      schema: {
        operationId: "getMe",
        summary: "Your token: its name, scopes and prefixes",
        tags: ["server"],
        response: answers({ 200: meSchema }),
      },
    },
    async ({ caller: { tokenName: name, scopes, prefixes: own } }) => ({
      name,
      scopes: [...scopes],
      names: own === null || own.names === null ? null : [...own.names],
      queues: own === null || own.queues === null ? null : [...own.queues],
    }),
  );
}
