/** Starting runs: one, or many in one call. Single starts that come together share one call of the database. */

import { Type } from "typebox";
import type { App } from "../http/app.js";
import { keyOf } from "../http/idempotency-header.js";
import type { Parts } from "../backend/backend.js";
import { type Problem, toProblem } from "../http/problems.js";
import {
  answers,
  batchSchema,
  idempotencyHeader,
  nameParams,
  startedSchema,
  startFields,
  startSchema,
  strict,
} from "../http/schemas.js";
import { toNewRun } from "./start-request.js";
import type { Started } from "pawl";
import { type NewRun, toStarted } from "pawl/engine";

const maxBatch = 10_000;
const maxBatchBytes = 32 * 1024 * 1024;

const batchItem = strict({ name: Type.String(), ...startFields });

export function startRoutes(app: App, parts: Parts): void {
  const { starter, maxPayloadBytes: maxBytes, logger } = parts;

  app.post(
    "/v1/workflows/:name/runs",
    {
      config: { scope: "start", prefixes: "checked" },
      schema: {
        operationId: "startRun",
        summary: "Start a run",
        description: "Answers when it is committed: 201, or 200 with the run that holds one of its keys.",
        tags: ["runs"],
        params: nameParams,
        headers: idempotencyHeader,
        body: startSchema,
        response: answers({ 200: startedSchema, 201: startedSchema }),
      },
      // All of it may be left out.
      preValidation: (request, _reply, done) => {
        request.body ??= {};
        done();
      },
    },
    async (request, reply) => {
      request.caller.demand({ name: request.params.name, queue: request.body.queue ?? "" });
      const headerKey = keyOf(request.headers);
      const { traceparent: headerTrace } = request.headers;
      const run = await toNewRun(request.params.name, request.body, { maxBytes, headerKey, headerTrace });
      const started = toStarted(await starter.start(run));
      return reply
        .code(started.created ? 201 : 200)
        .header("location", `/v1/runs/${started.runId}`)
        .send(started);
    },
  );

  app.post(
    "/v1/runs/batch",
    {
      config: { scope: "start", prefixes: "checked" },
      bodyLimit: maxBatchBytes,
      schema: {
        operationId: "startRuns",
        summary: "Start many runs",
        description:
          "In one statement, all or none; with `atomic: false` each by itself, and what is wrong with one is told in its place.",
        tags: ["runs"],
        body: strict({
          runs: Type.Array(batchItem, { maxItems: maxBatch }),
          atomic: Type.Optional(Type.Boolean({ description: "Default true" })),
        }),
        response: answers({ 200: batchSchema }),
      },
    },
    async (request) => {
      const { runs, atomic = true } = request.body;
      const { traceparent: headerTrace } = request.headers;
      const making = runs.map(async ({ name, ...body }, index) => {
        request.caller.demand({ name, queue: body.queue ?? "" });
        const of = `runs[${index}]`;
        return toNewRun(name, body, { maxBytes, headerTrace, of, what: `${of}.input` });
      });
      if (atomic) return { runs: await startAll(await Promise.all(making)) };
      const problems = (error: unknown): { error: Problem } => ({
        error: toProblem(error, request.id, logger),
      });
      const starting = making.map((run) => startOne(run).catch(problems));
      return { runs: await Promise.all(starting) };
    },
  );

  async function startAll(runs: readonly NewRun[]): Promise<Started[]> {
    if (runs.length === 0) return [];
    return (await starter.startMany(runs)).map((started) => toStarted(started));
  }

  async function startOne(run: Promise<NewRun>): Promise<Started> {
    return toStarted(await starter.start(await run));
  }
}
