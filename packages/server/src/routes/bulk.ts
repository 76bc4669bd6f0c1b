/** Bulk operations: one action on all runs that match a filter; their progress, results and stop. */

import type { BulkOperation, BulkPreview, BulkResult } from "pawl";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Backend } from "../backend/backend.js";
import { answers, date, json, nextCursor, nullable, oneOf, pageCursor, strict } from "../http/schemas.js";
import { listQuery, pageSchema, rerunFields } from "./run-schemas.js";

const actions = ["cancel", "rerun", "pause", "resume", "signal", "delete"] as const;
const outcomes = ["pending", "done", "skipped", "failed"] as const;
const { cursor: _cursor, limit: _limit, ...filters } = listQuery.properties;

/** The library checks which options an action takes. */
const bulkBody = strict({
  action: oneOf(actions),
  where: Type.Optional(
    strict(
      {
        name: Type.Optional(Type.String()),
        ...filters,
        input: Type.Optional(Type.Unknown({ description: "JSON that the input contains" })),
        tags: Type.Optional(
          Type.Record(Type.String(), Type.String(), { description: "Runs that have all these tags" }),
        ),
      },
      { description: "The filters of a listing" },
    ),
  ),
  all: Type.Optional(Type.Boolean({ description: "Allow a call without any filter" })),
  dryRun: Type.Optional(Type.Boolean({ description: "Only count, and show the first ten runs" })),
  ...rerunFields,
  reason: Type.Optional(Type.String({ description: "For cancel and pause: recorded with the runs" })),
  cascade: Type.Optional(Type.Boolean({ description: "For cancel: their descendants too" })),
  signal: Type.Optional(Type.String({ description: "The name of the signal" })),
  payload: Type.Optional(Type.Unknown({ description: "The payload of the signal" })),
  dedupKey: Type.Optional(Type.String({ description: "The dedup key of the signal" })),
});

const operationSchema = Type.Unsafe<BulkOperation>(
  strict(
    {
      id: Type.String(),
      status: oneOf(["working", "completed", "stopped", "failed"] as const),
      action: oneOf(actions),
      where: Type.Record(Type.String(), json("A filter")),
      who: Type.String({ description: "The token that started it" }),
      counted: Type.Integer({ description: "How many runs matched when it began" }),
      done: Type.Integer(),
      skipped: Type.Integer(),
      failed: Type.Integer(),
      error: nullable(Type.String({ description: "Why the operation as a whole was given up" })),
      startedAt: date,
      completedAt: nullable(date),
    },
    { title: "BulkOperation" },
  ),
);

const previewSchema = Type.Unsafe<BulkPreview>(
  strict(
    { count: Type.Integer(), runs: pageSchema.properties.runs },
    { title: "BulkPreview", description: "The answer of a dry run" },
  ),
);

const resultSchema = Type.Unsafe<BulkResult>(
  strict(
    {
      runId: Type.String(),
      outcome: oneOf(outcomes),
      reason: nullable(Type.String({ description: "Why it was skipped, or the error" })),
      rerunId: nullable(Type.String({ description: "The run that repeats it" })),
    },
    { title: "BulkResult" },
  ),
);

const operationParams = strict({ id: Type.String({ description: "The id of the operation" }) });
const tags = ["bulk"];

export function bulkRoutes(app: App, { pawl }: Backend): void {
  app.post(
    "/v1/bulk",
    {
      config: { scope: "admin" },
      schema: {
        operationId: "startBulk",
        summary: "Act on all runs that match a filter",
        description:
          "Counts the runs and stores the operation; workers and servers work it off in batches. " +
          "Runs that start later do not belong to it. With `dryRun` it answers 200 and writes nothing.",
        tags,
        body: bulkBody,
        response: answers({ 200: previewSchema, 202: operationSchema }),
      },
    },
    async (request, reply) => {
      // The library checks which options the action takes.
      const options = request.body as Parameters<typeof pawl.runs.bulk>[0];
      const answer: BulkOperation | BulkPreview = await pawl.runs.bulk(options);
      if (!("id" in answer)) return reply.code(200).send(answer);
      return reply.code(202).header("location", `/v1/bulk/${answer.id}`).send(answer);
    },
  );

  app.get(
    "/v1/bulk",
    {
      config: { scope: "admin" },
      schema: {
        operationId: "listBulk",
        summary: "List bulk operations, newest first",
        tags,
        querystring: strict({
          cursor: pageCursor,
          limit: Type.Optional(Type.Integer({ description: "1 to 100. Default 20" })),
        }),
        response: answers({ 200: strict({ operations: Type.Array(operationSchema), cursor: nextCursor }) }),
      },
    },
    async (request) => pawl.bulk.list(request.query),
  );

  app.get(
    "/v1/bulk/:id",
    {
      config: { scope: "admin" },
      schema: {
        operationId: "getBulk",
        summary: "The progress of a bulk operation",
        tags,
        params: operationParams,
        response: answers({ 200: operationSchema }),
      },
    },
    async (request) => pawl.bulk.get(request.params.id),
  );

  app.get(
    "/v1/bulk/:id/results",
    {
      config: { scope: "admin" },
      schema: {
        operationId: "listBulkResults",
        summary: "What became of each run of a bulk operation",
        tags,
        params: operationParams,
        querystring: strict({
          outcome: Type.Optional(oneOf(outcomes)),
          cursor: pageCursor,
          limit: Type.Optional(Type.Integer({ description: "1 to 1,000. Default 100" })),
        }),
        response: answers({ 200: strict({ results: Type.Array(resultSchema), cursor: nextCursor }) }),
      },
    },
    async (request) => pawl.bulk.results(request.params.id, request.query),
  );

  app.delete(
    "/v1/bulk/:id",
    {
      config: { scope: "admin" },
      schema: {
        operationId: "stopBulk",
        summary: "Stop a bulk operation",
        description: "Runs that it has not reached stay as they are.",
        tags,
        params: operationParams,
        response: answers({ 200: operationSchema }),
      },
    },
    async (request) => pawl.bulk.stop(request.params.id),
  );
}
