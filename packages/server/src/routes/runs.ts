/** A run by its id: as it is, its end, its journal, why it waits; signals to it and its cancellation. */

import { setMaxListeners } from "node:events";
import type { FastifyReply } from "fastify";
import { type ErrorRecord, type Json, type Run, RunNotFound } from "pawl";
import { type EndedRun, statusOf, stepsPage } from "pawl/engine";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { keyOf } from "../http/idempotency-header.js";
import { countWaits, heldSignal } from "../http/long-poll.js";
import type { Parts } from "../backend/backend.js";
import {
  answers,
  endedSchema,
  idempotencyHeader,
  namedRunParams,
  runParams,
  runSchema,
  stepsSchema,
  strict,
  waitSeconds,
  whySchema,
} from "../http/schemas.js";

/** The same calls twice: by id alone, and below the name of the definition, where a run of another name does not exist. */
const places = [
  { path: "/v1/runs/:id", of: "", params: runParams },
  { path: "/v1/workflows/:name/runs/:id", of: "OfWorkflow", params: namedRunParams },
] as const;

const maxAwaited = 1_000;

export function runRoutes(app: App, parts: Parts): void {
  endedRoute(app, parts);
  for (const place of places) placedRoutes(app, parts, place);
}

function placedRoutes(app: App, parts: Parts, { path, of, params }: (typeof places)[number]): void {
  const { pawl } = parts;
  const tags = ["runs"];

  app.get(
    path,
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: `getRun${of}`,
        summary: "Get a run",
        description: "With `waitSeconds`, as soon as it has ended, or as it is when the time has passed.",
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
      countWaits(parts.waits, reply, 1);
      await parts.results.wait(run.runId, seconds * 1_000, heldSignal(reply, parts.closing));
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
          "In the order in which the body got them, then the pending ones. At most 16 MiB at a time: `cursor` leads to the next page, " +
          "which may show a step again that has completed meanwhile.",
        tags,
        params,
        querystring: strict({
          cursor: Type.Optional(Type.String({ description: "What the page before gave as cursor" })),
        }),
        response: answers({ 200: stepsSchema }),
      },
    },
    async (request) => {
      const runId = await checked(request);
      const { cursor } = request.query;
      const page = isRunId(runId) ? await stepsPage(parts.store, runId, cursor) : { steps: [], cursor: null };
      // Nothing recorded, or no such run?
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
    async (request) => pawl.why(await checked(request)),
  );

  app.post(
    `${path}/signals/:event`,
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: `sendSignal${of}`,
        summary: "Send a signal",
        description:
          "The body is the payload, any JSON but null; without one it is {}. The header idempotency-key is the dedup key.",
        tags,
        params: strict({
          ...params.properties,
          event: Type.String({ description: "The name of the signal" }),
        }),
        headers: idempotencyHeader,
        body: Type.Unknown({ description: "The payload" }),
        response: answers({ 200: strict({ delivered: Type.Boolean() }) }),
      },
      // Before the validation, which makes null of it.
      preValidation: (request, _reply, done) => {
        if (request.body === undefined) request.body = {};
        done();
      },
    },
    async (request) => {
      const runId = await checked(request);
      const dedupKey = keyOf(request.headers);
      // Whatever it is: the library checks it.
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
          "At once and for good. Answers how many runs that ended: none, if it was cancelled before.",
        tags,
        params,
        querystring: strict({
          reason: Type.Optional(Type.String({ description: "Recorded with the run" })),
          cascade: Type.Optional(Type.Boolean({ description: "All runs below it too. Default false" })),
        }),
        response: answers({ 200: strict({ cancelled: Type.Integer() }) }),
      },
    },
    async (request) => pawl.runs.cancel(await checked(request), request.query),
  );

  /** The run, if it is of the name that the path has, and the caller may see it. */
  async function find({ params: given, caller }: Asked): Promise<Run> {
    const run = await pawl.runs.get(given.id);
    if (!caller.allows(run)) throw new RunNotFound(`there is no run ${run.runId}`);
    if (given.name === undefined || run.name === given.name) return run;
    throw new RunNotFound(`run ${run.runId} is not of ${given.name}`);
  }

  /** The id of the run; looked up only for a path with a name or a token with prefixes. */
  async function checked(asked: Asked): Promise<string> {
    const { params: given, caller } = asked;
    return given.name === undefined && !caller.isConfined ? given.id : (await find(asked)).runId;
  }
}

interface Asked {
  readonly params: { readonly id: string; readonly name?: string };
  readonly caller: Caller;
}

function endedRoute(app: App, parts: Parts): void {
  app.post(
    "/v1/runs/ended",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "awaitRuns",
        summary: "Which of these runs have ended",
        description:
          "Answers as soon as at least one has ended or does not exist, or with none when the time has passed. " +
          "At most 16 MiB of results: `more` says that others have ended too, and are told when you ask for the rest.",
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
      const known = await visible(parts, request.caller, wellFormed);
      const isKnown = new Set(known);
      const missing = runIds
        .filter((id) => !isKnown.has(id))
        .map((runId) => ({ runId, phase: null, result: null, error: null }));
      let ended = await parts.store.ended(known);
      if (missing.length + ended.runs.length === 0 && seconds > 0) {
        countWaits(parts.waits, reply, known.length);
        await firstEnd(parts, known, seconds * 1_000, reply);
        ended = await parts.store.ended(known);
      }
      return { runs: [...missing, ...ended.runs].map(toEnded), more: ended.more };
    },
  );
}

/** Those of them that the prefixes of the caller's token allow: for it, the others do not exist. */
async function visible({ store }: Parts, caller: Caller, runIds: string[]): Promise<string[]> {
  if (!caller.isConfined) return runIds;
  const named = await store.named(runIds);
  return named.filter((run) => caller.allows(run)).map(({ runId }) => runId);
}

/** Resolves when one of them has ended, the time has passed, or nobody waits any more. */
async function firstEnd(
  { results, closing }: Parts,
  runIds: readonly string[],
  timeoutMs: number,
  reply: FastifyReply,
): Promise<void> {
  const held = heldSignal(reply, closing);
  const enough = new AbortController();
  // One for each of the runs.
  setMaxListeners(0, enough.signal);
  const letGo = (): void => enough.abort();
  if (held.aborted) return;
  held.addEventListener("abort", letGo);
  try {
    await Promise.race(runIds.map((runId) => results.wait(runId, timeoutMs, enough.signal)));
  } finally {
    held.removeEventListener("abort", letGo);
    letGo();
  }
}

function toEnded({ runId, phase, result, error }: EndedRun) {
  return {
    runId,
    status: phase === null ? null : (statusOf(phase) as "completed" | "failed" | "cancelled"),
    output: result === null ? null : (JSON.parse(result) as Json),
    error: error === null ? null : (JSON.parse(error) as ErrorRecord),
  };
}

/** Others belong to no run, and the database takes none of them. */
function isRunId(id: string): boolean {
  return /^[1-9]\d{0,18}$/.test(id) && BigInt(id) < 2n ** 63n;
}
