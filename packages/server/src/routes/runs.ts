/**
 * One run: read it, wait for its end, list its steps, ask why it waits, signal it, cancel it, run it
 * again.
 */

import { setMaxListeners } from "node:events";
import type { FastifyReply } from "fastify";
import { type ErrorRecord, type Json, type Run, RunNotFound } from "pawl";
import { type EndedRun, values } from "pawl/engine";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { idempotencyKeyOf } from "../http/idempotency-header.js";
import { countWaits, whenOver } from "../http/long-poll.js";
import type { Backend } from "../backend/backend.js";
import { answers, idempotencyHeader, pageCursor, strict, waitSeconds } from "../http/schemas.js";
import {
  endedSchema,
  namedRunParams,
  rerunSchema,
  runParams,
  runSchema,
  stepsSchema,
  whySchema,
} from "./run-schemas.js";

/**
 * Each call has two paths: by id alone, and below the name of the definition, which the run must
 * have.
 */
const places = [
  { path: "/v1/runs/:id", of: "", params: runParams },
  { path: "/v1/workflows/:name/runs/:id", of: "OfWorkflow", params: namedRunParams },
] as const;

const maxAwaited = 1_000;
const rerunAnswer = strict({
  runId: Type.String({ description: "The new run" }),
  created: Type.Boolean({ description: "false: the key had started it before" }),
});

export function runRoutes(app: App, backend: Backend): void {
  endedRoute(app, backend);
  for (const place of places) placedRoutes(app, backend, place);
}

function placedRoutes(app: App, backend: Backend, { path, of, params }: (typeof places)[number]): void {
  const { pawl, engine } = backend;
  const tags = ["runs"];

  app.get(
    path,
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: `getRun${of}`,
        summary: "Get a run",
        description: "With `waitSeconds` it answers when the run has ended, or when the time has passed.",
        tags,
        params,
        querystring: strict({ waitSeconds }),
        response: answers({ 200: runSchema }),
      },
    },
    async (request, reply) => {
      const run = await find(request);
      const { waitSeconds: seconds = 0 } = request.query;
      if (seconds === 0 || run.status !== "running") return run;
      countWaits(backend.waits, reply, 1);
      await engine.waitForEnd(run.runId, seconds * 1_000, whenOver(reply, backend.closing));
      return pawl.runs.get(run.runId);
    },
  );

  app.get(
    `${path}/steps`,
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: `listSteps${of}`,
        summary: "The recorded steps of a workflow run",
        description:
          "In the order of replay, then the pending steps. A page has at most 16 MiB: `cursor` leads to the next one, " +
          "which may repeat a step that has completed in the meantime.",
        tags,
        params,
        querystring: strict({ cursor: pageCursor }),
        response: answers({ 200: stepsSchema }),
      },
    },
    async (request) => {
      const runId = await checked(request);
      const { cursor } = request.query;
      const page = isRunId(runId) ? await engine.steps(runId, cursor) : { steps: [], cursor: null };
      // No recorded steps, or no such run?
      if (page.steps.length === 0) await pawl.runs.get(runId);
      return page;
    },
  );

  app.get(
    `${path}/why`,
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: `explainRun${of}`,
        summary: "Why a run is not making progress",
        tags,
        params,
        response: answers({ 200: whySchema }),
      },
    },
    async (request) => {
      const runId = await checked(request);
      const { caller } = request;
      if (!caller.hasPrefixes || !isRunId(runId)) return pawl.why(runId);
      return (await engine.why(runId, (run) => caller.allows(run))) ?? pawl.why(runId);
    },
  );

  app.post(
    `${path}/signals/:event`,
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: `sendSignal${of}`,
        summary: "Send a signal",
        description:
          "The body is the payload, any JSON but null; without a body it is {}. The header idempotency-key is the dedup key.",
        tags,
        params: strict({
          ...params.properties,
          event: Type.String({ description: "The name of the signal" }),
        }),
        headers: idempotencyHeader,
        body: Type.Unknown({ description: "The payload" }),
        response: answers({ 200: strict({ delivered: Type.Boolean() }) }),
      },
      // Before the validation, which turns a missing body into null.
      preValidation: (request, _reply, done) => {
        if (request.body === undefined) request.body = {};
        done();
      },
    },
    async (request) => {
      const runId = await checked(request);
      const dedupKey = idempotencyKeyOf(request.headers);
      // The library checks it.
      const payload = request.body as object | undefined;
      return pawl.signal(runId, request.params.event, payload, { dedupKey });
    },
  );

  app.delete(
    path,
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: `cancelRun${of}`,
        summary: "Cancel a run",
        description:
          "At once and for good. Answers how many runs were cancelled: 0 if this one was cancelled before.",
        tags,
        params,
        querystring: strict({
          reason: Type.Optional(Type.String({ description: "Recorded with the run" })),
          cascade: Type.Optional(
            Type.Boolean({ description: "Cancel all its descendants too. Default false" }),
          ),
        }),
        response: answers({ 200: strict({ cancelled: Type.Integer() }) }),
      },
    },
    async (request) => pawl.runs.cancel(await checked(request), request.query),
  );

  app.post(
    `${path}/rerun`,
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: `rerunRun${of}`,
        summary: "Run an ended run again",
        description:
          "Starts a new run that begins where the old one failed, or at `from`. 409 if the run has not ended. " +
          "The header idempotency-key is the key of the new run: a second request with it answers 200 with the first one.",
        tags,
        params,
        headers: idempotencyHeader,
        body: rerunSchema,
        response: answers({ 200: rerunAnswer, 201: rerunAnswer }),
      },
      // Every member is optional.
      preValidation: (request, _reply, done) => {
        request.body ??= {};
        done();
      },
    },
    async (request, reply) => {
      const idempotencyKey = idempotencyKeyOf(request.headers);
      const rerun = await pawl.runs.rerun(await checked(request), { ...request.body, idempotencyKey });
      return reply
        .code(rerun.created ? 201 : 200)
        .header("location", `/v1/runs/${rerun.runId}`)
        .send(rerun);
    },
  );

  /** The run, if the caller may see it and it has the name in the path. */
  async function find({ params: given, caller }: Asked): Promise<Run> {
    const run = await pawl.runs.get(given.id);
    if (!caller.allows(run)) throw new RunNotFound(`there is no run ${run.runId}`);
    if (given.name === undefined || run.name === given.name) return run;
    throw new RunNotFound(`run ${run.runId} is not a run of ${given.name}`);
  }

  /** The id of the run. Reads the run only for a path with a name or a token with prefixes. */
  async function checked(asked: Asked): Promise<string> {
    const { params: given, caller } = asked;
    return given.name === undefined && !caller.hasPrefixes ? given.id : (await find(asked)).runId;
  }
}

interface Asked {
  readonly params: { readonly id: string; readonly name?: string };
  readonly caller: Caller;
}

function endedRoute(app: App, backend: Backend): void {
  app.post(
    "/v1/runs/ended",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "awaitRuns",
        summary: "Which of these runs have ended",
        description:
          "Answers when at least one has ended or does not exist, or with none when the time has passed. " +
          "At most 16 MiB of results: if `more` is true, call again for the other runs.",
        tags: ["runs"],
        body: strict({
          runIds: Type.Array(Type.String(), { minItems: 1, maxItems: maxAwaited }),
          waitSeconds,
        }),
        response: answers({ 200: endedSchema }),
      },
    },
    async (request, reply) => {
      const { runIds, waitSeconds: seconds = 0 } = request.body;
      const wellFormed = [...new Set(runIds)].filter(isRunId);
      const known = await visible(backend, request.caller, wellFormed);
      const isKnown = new Set(known);
      const missing = runIds
        .filter((id) => !isKnown.has(id))
        .map((runId) => ({ runId, phase: null, result: null, error: null }));
      let ended = await backend.engine.store.ended(known);
      if (missing.length + ended.runs.length === 0 && seconds > 0) {
        countWaits(backend.waits, reply, known.length);
        await firstEnd(backend, known, seconds * 1_000, reply);
        ended = await backend.engine.store.ended(known);
      }
      return { runs: [...missing, ...ended.runs].map(toEnded), more: ended.more };
    },
  );
}

/**
 * The runs that the prefixes of the caller's token allow. For this caller the others do not exist.
 */
async function visible({ engine }: Backend, caller: Caller, runIds: string[]): Promise<string[]> {
  if (!caller.hasPrefixes) return runIds;
  const named = await engine.store.named(runIds);
  return named.filter((run) => caller.allows(run)).map(({ runId }) => runId);
}

/** Resolves when one of them has ended, the time has passed, or the call is over. */
async function firstEnd(
  { engine, closing }: Backend,
  runIds: readonly string[],
  timeoutMs: number,
  reply: FastifyReply,
): Promise<void> {
  const over = whenOver(reply, closing);
  const waits = new AbortController();
  // One listener for each run.
  setMaxListeners(0, waits.signal);
  const endWaits = (): void => waits.abort();
  if (over.aborted) return;
  over.addEventListener("abort", endWaits);
  try {
    await Promise.race(runIds.map((runId) => engine.waitForEnd(runId, timeoutMs, waits.signal)));
  } finally {
    over.removeEventListener("abort", endWaits);
    endWaits();
  }
}

function toEnded({ runId, phase, result, error }: EndedRun) {
  return {
    runId,
    status: phase === null ? null : (values.statusOf(phase) as "completed" | "failed" | "cancelled"),
    output: result === null ? null : (JSON.parse(result) as Json),
    error: error === null ? null : (JSON.parse(error) as ErrorRecord),
  };
}

/** Whether a text can be the id of a run. The database refuses all others. */
function isRunId(id: string): boolean {
  return /^[1-9]\d{0,18}$/.test(id) && BigInt(id) < 2n ** 63n;
}
