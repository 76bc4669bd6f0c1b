/** A worker reads what belongs to a claimed run: its journal, its inbox, its children. */

import { Type } from "typebox";
import { strict } from "../http/schemas.js";
import * as answers from "./answer-schemas.js";
import { type Protocol, route, storeOf, tags } from "./protocol.js";
import { id, int } from "./request-schemas.js";
import { visibleChildren } from "./visible-children.js";

export function readRoutes({ app, backend }: Protocol): void {
  app.post(
    "/v1/workers/journal",
    {
      ...route,
      schema: {
        tags,
        summary: "A page of the journal of a workflow run, by name; empty at the end",
        body: strict({ runId: id, after: Type.String({ maxLength: 256, pattern: "^[^\\0]*$" }) }),
        response: { 200: answers.journalPage },
      },
    },
    async (request) => {
      const { runId, after } = request.body;
      return { steps: await storeOf(backend, request).journal(runId, after) };
    },
  );

  app.post(
    "/v1/workers/inbox-seqs",
    {
      ...route,
      schema: {
        tags,
        summary: "The seq of the last signal of each run",
        body: strict({ runIds: Type.Array(id, { maxItems: 20_000 }) }),
        response: { 200: answers.inboxSeqs },
      },
    },
    async (request) => ({
      seqs: Object.fromEntries(await storeOf(backend, request).inboxSeqs(request.body.runIds)),
    }),
  );

  app.post(
    "/v1/workers/inbox",
    {
      ...route,
      schema: {
        tags,
        summary: "A page of the inbox of a run, oldest first; empty at the end",
        body: strict({ runId: id, after: int, upTo: int }),
        response: { 200: answers.inboxPage },
      },
    },
    async (request) => ({
      signals: await storeOf(backend, request).inbox(request.body.runId, request.body),
    }),
  );

  app.post(
    "/v1/workers/children",
    {
      ...route,
      schema: {
        tags,
        summary: "A page of the children of the last spawn of a run, in order; empty at the end",
        body: strict({ runId: id, after: Type.Integer({ minimum: -1, maximum: 2_147_483_647 }) }),
        response: { 200: answers.childrenPage },
      },
    },
    async (request) => {
      const { runId, after } = request.body;
      const children = await storeOf(backend, request).children(runId, after);
      return { children: await visibleChildren(backend.engine.store, request.caller, children) };
    },
  );
}
