/** Start runs: one, or many in one call. Single starts of the same moment share one statement. */

import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { idempotencyKeyOf } from "../http/idempotency-header.js";
import type { Backend } from "../backend/backend.js";
import { type Problem, toProblem } from "../http/problems.js";
import { answers, idempotencyHeader, strict } from "../http/schemas.js";
import { batchSchema, nameParams, startedSchema, startFields, startSchema } from "./run-schemas.js";
import { toNewRun } from "./start-request.js";
import type { Started } from "pawl";
import type { NewRun } from "pawl/engine";

const maxBatch = 10_000;
const maxBatchBytes = 32 * 1024 * 1024;

const batchItem = strict({ name: Type.String(), ...startFields });

export function startRoutes(app: App, { engine, logger }: Backend): void {
  app.post(
    "/v1/workflows/:name/runs",
    {
      config: { scope: "start", prefixes: "checked" },
      schema: {
        operationId: "startRun",
        summary: "Start a run",
        description:
          "Answers when the start is committed: 201, or 200 with the run that holds one of its keys.",
        tags: ["runs"],
        params: nameParams,
        headers: idempotencyHeader,
        body: startSchema,
        response: answers({ 200: startedSchema, 201: startedSchema }),
      },
      // Every member is optional.
      preValidation: (request, _reply, done) => {
        request.body ??= {};
        done();
      },
    },
    async (request, reply) => {
      request.caller.require({ name: request.params.name, queue: request.body.queue ?? "" });
      const headerKey = idempotencyKeyOf(request.headers);
      const { traceparent: headerTrace } = request.headers;
      const run = await toNewRun(engine, request.params.name, request.body, { headerKey, headerTrace });
      const started = withoutForeign(await engine.start(run), request.caller);
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
          "In one statement, all or none. With `atomic: false` each by itself: a problem stands in place of its run.",
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
        request.caller.require({ name, queue: body.queue ?? "" });
        const of = `runs[${index}]`;
        return toNewRun(engine, name, body, { headerTrace, of, what: `${of}.input` });
      });
      if (atomic) {
        const made = await Promise.all(making);
        if (made.length === 0) return { runs: [] };
        const started = await engine.startMany(made);
        return { runs: started.map((one) => withoutForeign(one, request.caller)) };
      }
      const problems = (error: unknown): { error: Problem } => ({
        error: toProblem(error, request.id, logger),
      });
      const starting = making.map((run) => startOne(run, request.caller).catch(problems));
      return { runs: await Promise.all(starting) };
    },
  );

  async function startOne(run: Promise<NewRun>, caller: Caller): Promise<Started> {
    return withoutForeign(await engine.start(await run), caller);
  }
}

/** The answer without a similar name that the prefixes of the token hide. */
function withoutForeign(started: Started, caller: Caller): Started {
  const { nearest, ...others } = started;
  return nearest === undefined || caller.allows({ name: nearest }) ? started : others;
}
