/** Pauses: pause and resume runs, queues and definitions, and list what is paused. */

import { RunNotFound } from "pawl";
import { Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { answers, date, nullable, oneOf, strict } from "../http/schemas.js";
import { runParams } from "./run-schemas.js";

const tags = ["pauses"];

const pauseFields = {
  reason: Type.Optional(Type.String({ description: "Why, for the people who ask" })),
  by: Type.Optional(
    Type.String({ description: "Who pauses it. Default: the name of the token, which is always recorded" }),
  ),
};
const version = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: "Only this version. Default: all" }),
);
const changed = strict(
  { changed: Type.Boolean({ description: "False: nothing has changed" }) },
  { title: "PauseChange" },
);
const resumed = strict({
  ...changed.properties,
  still: Type.Boolean({ description: "The version is still paused, because the whole definition is" }),
});
const queueParams = strict({ queue: Type.String({ description: "The name of the queue" }) });
const definitionParams = strict({ name: Type.String({ description: "The name of the definition" }) });

export function pauseRoutes(app: App, backend: Backend): void {
  runRoutes(app, backend);
  queueRoutes(app, backend);
  definitionRoutes(app, backend);
  listRoute(app, backend);
}

function runRoutes(app: App, { pawl }: Backend): void {
  const config = { scope: "write", prefixes: "checked" } as const;
  app.post(
    "/v1/runs/:id/pause",
    {
      config,
      schema: {
        operationId: "pauseRun",
        summary: "Pause a run",
        description:
          "It finishes its present step and then stays. Signals are still delivered, and timers wait.",
        tags,
        params: runParams,
        body: strict(pauseFields),
        response: answers({ 200: changed }),
      },
      preValidation: withoutBody,
    },
    async ({ params, body, caller }) => {
      await requireRun(params.id, caller);
      return pawl.runs.pause(params.id, optionsOf(body, caller));
    },
  );

  app.post(
    "/v1/runs/:id/resume",
    {
      config,
      schema: {
        operationId: "resumeRun",
        summary: "Resume a paused run",
        tags,
        params: runParams,
        body: strict({}),
        response: answers({ 200: changed }),
      },
      preValidation: withoutBody,
    },
    async ({ params, caller }) => {
      await requireRun(params.id, caller);
      return pawl.runs.resume(params.id);
    },
  );

  /** For a token with prefixes, the runs that they do not allow do not exist. */
  async function requireRun(runId: string, caller: Caller): Promise<void> {
    if (!caller.hasPrefixes) return;
    const run = await pawl.runs.get(runId);
    if (!caller.allows(run)) throw new RunNotFound(`there is no run ${run.runId}`);
  }
}

function queueRoutes(app: App, { pawl }: Backend): void {
  const config = { scope: "admin", prefixes: "checked" } as const;
  app.post(
    "/v1/queues/:queue/pause",
    {
      config,
      schema: {
        operationId: "pauseQueue",
        summary: "Pause a queue",
        description:
          "Running steps finish, and no worker begins a step of its runs. Receivers get no messages of a queue with this name.",
        tags,
        params: queueParams,
        body: strict(pauseFields),
        response: answers({ 200: changed }),
      },
      preValidation: withoutBody,
    },
    async ({ params: { queue }, body, caller }) => {
      caller.require({ name: "", queue });
      return pawl.queues.pause(queue, optionsOf(body, caller));
    },
  );

  app.post(
    "/v1/queues/:queue/resume",
    {
      config,
      schema: {
        operationId: "resumeQueue",
        summary: "Resume a paused queue",
        tags,
        params: queueParams,
        body: strict({}),
        response: answers({ 200: resumed }),
      },
      preValidation: withoutBody,
    },
    async ({ params: { queue }, caller }) => {
      caller.require({ name: "", queue });
      return { ...(await pawl.queues.resume(queue)), still: false };
    },
  );
}

function definitionRoutes(app: App, { pawl }: Backend): void {
  const config = { scope: "admin", prefixes: "checked" } as const;
  app.post(
    "/v1/definitions/:name/pause",
    {
      config,
      schema: {
        operationId: "pauseDefinition",
        summary: "Pause a definition",
        description: "Running steps finish, and no worker begins a step of its runs.",
        tags,
        params: definitionParams,
        body: strict({ ...pauseFields, version }),
        response: answers({ 200: changed }),
      },
      preValidation: withoutBody,
    },
    async ({ params: { name }, body, caller }) => {
      caller.require({ name, queue: "" });
      return pawl.definitions.pause(name, { ...optionsOf(body, caller), version: body.version });
    },
  );

  app.post(
    "/v1/definitions/:name/resume",
    {
      config,
      schema: {
        operationId: "resumeDefinition",
        summary: "Resume a paused definition",
        description: "Without a version it removes all pauses of the definition.",
        tags,
        params: definitionParams,
        body: strict({ version }),
        response: answers({ 200: resumed }),
      },
      preValidation: withoutBody,
    },
    async ({ params: { name }, body, caller }) => {
      caller.require({ name, queue: "" });
      return pawl.definitions.resume(name, { version: body.version });
    },
  );
}

function listRoute(app: App, { pawl }: Backend): void {
  const pause = strict(
    {
      scope: oneOf(["queue", "definition"] as const),
      name: Type.String(),
      version: Type.Union([Type.Integer(), Type.Null()], {
        description: "Of a definition; null: every version",
      }),
      by: Type.String(),
      reason: nullable(Type.String()),
      since: date,
    },
    { title: "PausedQueueOrDefinition" },
  );
  app.get(
    "/v1/pauses",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "listPauses",
        summary: "List the paused queues and definitions",
        tags,
        response: answers({ 200: strict({ pauses: Type.Array(pause) }) }),
      },
    },
    async ({ caller }) => {
      const [queues, definitions] = await Promise.all([pawl.queues.paused(), pawl.definitions.paused()]);
      return {
        pauses: [
          ...queues
            .filter(({ name }) => caller.allows({ name: null, queue: name }))
            .map((one) => ({ scope: "queue" as const, version: null, ...one })),
          ...definitions
            .filter(({ name }) => caller.allows({ name, queue: null }))
            .map((one) => ({ scope: "definition" as const, ...one })),
        ],
      };
    },
  );
}

/** The person who pauses: the name of the token, and the `by` that the caller gives. */
function optionsOf(
  { reason, by }: { readonly reason?: string; readonly by?: string },
  { tokenName }: Caller,
): { readonly reason: string | undefined; readonly by: string | undefined } {
  if (tokenName === null) return { reason, by };
  return { reason, by: by === undefined ? tokenName : `${by} (token ${tokenName})` };
}

/** A missing body is an empty one. Before the validation, which turns it into null. */
function withoutBody(request: { body: unknown }, _reply: unknown, done: () => void): void {
  if (request.body === undefined || request.body === null) request.body = {};
  done();
}
