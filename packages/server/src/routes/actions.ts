/** The action log: who has done what, when and from where. */

import type { Action } from "pawl";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Backend } from "../backend/backend.js";
import { answers, date, json, nextCursor, nullable, pageCursor, strict } from "../http/schemas.js";

const actionSchema = Type.Unsafe<Action>(
  strict(
    {
      id: Type.String(),
      at: date,
      who: Type.String({ description: 'The name of the token, or "local"' }),
      from: Type.String({ description: 'The address of the caller, "cli" or "library"' }),
      action: Type.String({ description: "What was done, such as runs.cancel" }),
      target: nullable(Type.String({ description: "The id or name of the thing" })),
      detail: json("More about it"),
    },
    { title: "Action" },
  ),
);

const time = (description: string) => Type.Optional(Type.String({ description }));

export function actionRoutes(app: App, { pawl }: Backend): void {
  app.get(
    "/v1/actions",
    {
      config: { scope: "admin" },
      schema: {
        operationId: "listActions",
        summary: "The action log, newest first",
        tags: ["actions"],
        querystring: strict({
          who: Type.Optional(Type.String()),
          action: Type.Optional(Type.String()),
          target: Type.Optional(Type.String()),
          since: time("Actions at this time or later, ISO 8601"),
          until: time("Actions before this time, ISO 8601"),
          cursor: pageCursor,
          limit: Type.Optional(Type.Integer({ description: "1 to 1,000. Default 100" })),
        }),
        response: answers({ 200: strict({ actions: Type.Array(actionSchema), cursor: nextCursor }) }),
      },
    },
    async (request) => pawl.actions.list(request.query),
  );
}
