/** Address runs by their keys: find them, and signal all live runs of a correlation key. */

import { type FindOptions, InvalidOption } from "pawl";
import { Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import { idempotencyKeyOf } from "../http/idempotency-header.js";
import { answers, idempotencyHeader, strict } from "../http/schemas.js";
import { runSchema } from "./run-schemas.js";
import { bytesOf } from "./start-request.js";

const tags = ["runs"];
const runIds = (description: string) => Type.Array(Type.String(), { description });

export function keyRoutes(app: App, { pawl }: Backend): void {
  app.get(
    "/v1/runs/find",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "findRuns",
        summary: "Find runs by a key",
        description:
          "One of idempotencyKey, uniqueKey (the run that holds it now) and correlationKey. Live runs first, then the " +
          "newest, at most 100: a listing with the filter correlationKey has pages.",
        tags,
        querystring: strict({
          idempotencyKey: Type.Optional(Type.String()),
          uniqueKey: Type.Optional(Type.String()),
          uniqueKeyBase64: Type.Optional(Type.String({ description: "The same as bytes" })),
          correlationKey: Type.Optional(Type.String()),
          name: Type.Optional(Type.String({ description: "Only runs of this definition" })),
        }),
        response: answers({ 200: strict({ runs: Type.Array(runSchema) }) }),
      },
    },
    async ({ query, caller }) => {
      const { uniqueKeyBase64, ...given } = query;
      if (given.uniqueKey !== undefined && uniqueKeyBase64 !== undefined) {
        throw new InvalidOption("give uniqueKey or uniqueKeyBase64, not both");
      }
      const key = uniqueKeyBase64 === undefined ? {} : { uniqueKey: bytesOf(uniqueKeyBase64) };
      // The library checks that there is exactly one key.
      const runs = await pawl.runs.find({ ...given, ...key } as FindOptions);
      return { runs: runs.filter((run) => caller.allows(run)) };
    },
  );

  app.post(
    "/v1/signals/:event",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "sendCorrelatedSignal",
        summary: "Send a signal to all live runs of a correlation key",
        description:
          "The body is the payload, any JSON but null; without a body it is {}. The header idempotency-key is the dedup key. " +
          "At most 1,000 runs.",
        tags,
        params: strict({ event: Type.String({ description: "The name of the signal" }) }),
        querystring: strict({
          correlationKey: Type.String({ description: "The correlation key of their starts" }),
          name: Type.Optional(Type.String({ description: "Only runs of this definition" })),
        }),
        headers: idempotencyHeader,
        body: Type.Unknown({ description: "The payload" }),
        response: answers({
          200: strict({
            delivered: runIds("The runs that got it"),
            duplicate: runIds("They have already received a signal with this dedup key"),
            full: runIds("Their inbox is full"),
          }),
        }),
      },
      // Before the validation, which turns a missing body into null.
      preValidation: (request, _reply, done) => {
        if (request.body === undefined) request.body = {};
        done();
      },
    },
    async (request) => {
      const { correlationKey, name } = request.query;
      request.caller.require({ name: name ?? "", queue: "" });
      const dedupKey = idempotencyKeyOf(request.headers);
      // The library checks it.
      const payload = request.body as object;
      const sent = await pawl.signal({ correlationKey, name }, request.params.event, payload, { dedupKey });
      return { delivered: [...sent.delivered], duplicate: [...sent.duplicate], full: [...sent.full] };
    },
  );
}
