/** A worker registers, sends heartbeats, sets its limits and unregisters. */

import { InvalidOption } from "pawl";
import { values } from "pawl/engine";
import { Type } from "typebox";
import { nullable, strict } from "../http/schemas.js";
import * as answers from "./answer-schemas.js";
import { type Protocol, refuseBadValues, route, storeOf, tags } from "./protocol.js";
import { checkListedOnce } from "./read-requests.js";
import { definition, id, shortName, workerId } from "./request-schemas.js";

/** The host, the process and the release of a worker, or anything else that people want to see. */
const info = Type.Object(
  {},
  {
    additionalProperties: true,
    description: "About the worker: any members, at most 10,000 characters of JSON",
  },
);

/** `hurry`: a worker has registered. */
export function registerRoutes({ app, backend, waiters }: Protocol, hurry: () => void): void {
  const { heartbeats, hub } = backend.engine;

  app.post(
    "/v1/workers/register",
    {
      ...route,
      schema: {
        tags,
        summary: "Register a worker; its id must be new",
        body: strict({
          workerId,
          leaseMs: Type.Integer({
            minimum: 1_000,
            maximum: 86_400_000,
            description: "At least a second: a shorter lease expires during any short pause",
          }),
          queues: Type.Array(shortName, { minItems: 1, maxItems: 1_000 }),
          info,
          definitions: Type.Array(definition, { minItems: 1, maxItems: 1_000 }),
        }),
        response: { 200: answers.done },
      },
    },
    async (request) => {
      const { body, caller } = request;
      for (const queue of body.queues) caller.require({ queue });
      for (const { name, queue } of body.definitions) caller.require({ name, queue });
      const { text } = values.toJson(body.info, "body.info");
      if (text.length > 10_000)
        throw new InvalidOption("body.info must be at most 10,000 characters of JSON");
      checkListedOnce(body.definitions);
      const definitions = body.definitions.map(({ declared, ...served }, index) => ({
        ...served,
        declared: declared === undefined ? null : declaredText(declared, index),
      }));
      await refuseBadValues(() => storeOf(backend, request).register({ ...body, info: text, definitions }));
      hurry();
      return {};
    },
  );

  app.post(
    "/v1/workers/unregister",
    {
      ...route,
      schema: {
        tags,
        summary: "Unregister a worker that has stopped, and release its claims",
        body: strict({ workerId }),
        response: {
          200: strict({
            held: Type.Integer({
              description: "How many runs it still holds because somebody has them locked: call again",
            }),
          }),
        },
      },
    },
    async (request) => {
      const held = await storeOf(backend, request).unregister(request.body.workerId);
      waiters.rewind();
      hub.hint(null);
      return { held };
    },
  );

  app.post(
    "/v1/workers/heartbeat",
    {
      ...route,
      schema: {
        tags,
        summary: "Renew the lease; answers which claimed runs were cancelled and, if asked, all claims",
        body: strict({ workerId, since: Type.Union([id, Type.Literal("0"), Type.Null()]) }),
        response: { 200: answers.heartbeat },
      },
    },
    ({ body, caller }) => heartbeats.ownedBy(caller.tokenName).beat(body.workerId, body.since),
  );

  app.post(
    "/v1/workers/limits",
    {
      ...route,
      schema: {
        tags,
        summary: "Set a limit that the worker declares",
        description: "Its rate (allowed, periodMs, burst), or concurrent, or both; null: it has none",
        body: strict({
          name: shortName,
          allowed: nullable(Type.Number({ exclusiveMinimum: 0, maximum: 1e9 })),
          periodMs: nullable(Type.Number({ minimum: 1, maximum: 36_525 * 86_400_000 })),
          burst: nullable(Type.Number({ minimum: 1, maximum: 1e9 })),
          concurrent: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 32_767 }))),
        }),
        response: { 200: answers.done },
      },
    },
    async ({ body, caller }) => {
      caller.require({ name: body.name, queue: null });
      await backend.engine.setLimit({ ...body, concurrent: body.concurrent ?? null });
      return {};
    },
  );
}

/** What the code of a definition declares. It only explains the definition: keep it small. */
function declaredText(declared: object, index: number): string {
  const { text } = values.toJson(declared, `body.definitions[${index}].declared`);
  if (text.length <= 50_000) return text;
  throw new InvalidOption(
    `body.definitions[${index}].declared must be at most 50,000 characters of JSON, not ${text.length}: leave it out`,
  );
}
