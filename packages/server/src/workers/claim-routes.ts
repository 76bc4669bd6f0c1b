/** A worker claims runs, or waits for some, and releases and compares its claims. */

import { Type } from "typebox";
import { countWaits, onLostAnswer, whenGone } from "../http/long-poll.js";
import { strict } from "../http/schemas.js";
import * as answers from "./answer-schemas.js";
import { type Protocol, route, storeOf, tags } from "./protocol.js";
import { heldClaim, id, shortName, version, workerId } from "./request-schemas.js";

const maxWaitSeconds = 30;
const claims = strict({ claims: Type.Array(heldClaim, { maxItems: 20_000 }) });
const runIds = Type.Array(id);

export function claimRoutes({ app, backend, waiters }: Protocol): void {
  const { hub } = backend.engine;

  app.post(
    "/v1/workers/claim",
    {
      ...route,
      schema: {
        tags,
        summary: "Claim runs, or wait for some",
        body: strict({
          workerId,
          claimId: id,
          queue: shortName,
          limit: Type.Integer({ minimum: 1, maximum: 500 }),
          definitions: Type.Array(strict({ name: shortName, version }), { minItems: 1, maxItems: 1_000 }),
          waitSeconds: Type.Optional(Type.Number({ minimum: 0, maximum: maxWaitSeconds })),
        }),
        response: { 200: answers.claimed },
      },
    },
    async ({ body, caller }, reply) => {
      const { definitions, waitSeconds = 0, ...request } = body;
      for (const { name } of definitions) caller.require({ name, queue: request.queue });
      const names = definitions.map(({ name }) => name);
      const versions = definitions.map((one) => one.version);
      if (waitSeconds > 0) countWaits(backend.waits, reply, 1);
      const found = await waiters.claim(
        { ...request, owner: caller.tokenName, names, versions },
        waitSeconds * 1_000,
        whenGone(reply),
      );
      onLostAnswer(reply, () => waiters.release(body.queue, found.runs, body.claimId));
      return { runs: [...found.runs], more: found.more };
    },
  );

  app.post(
    "/v1/workers/claim/end",
    {
      ...route,
      schema: {
        tags,
        summary: "End a waiting claim: it answers at once with the runs that it has",
        body: strict({ workerId, claimId: id }),
        response: { 200: answers.done },
      },
    },
    async ({ body, caller }) => {
      waiters.end({ ...body, owner: caller.tokenName });
      return {};
    },
  );

  app.post(
    "/v1/workers/release",
    {
      ...route,
      schema: {
        tags,
        summary: "Release claims without an outcome",
        body: claims,
        response: { 200: strict({ released: runIds }) },
      },
    },
    async (request) => {
      const released = await storeOf(backend, request).release(request.body.claims);
      if (released.length > 0) {
        waiters.rewind();
        hub.hint(null);
      }
      return { released };
    },
  );

  app.post(
    "/v1/workers/held",
    {
      ...route,
      schema: {
        tags,
        summary: "Which of these claims are still held",
        body: claims,
        response: { 200: strict({ held: runIds }) },
      },
    },
    async (request) => ({ held: await storeOf(backend, request).held(request.body.claims) }),
  );

  app.post(
    "/v1/workers/paused",
    {
      ...route,
      schema: {
        tags,
        summary: "Which of these runs are paused",
        description:
          "Ask before you begin a step of a run about which no answer has told you anything for half a second.",
        body: claims,
        response: { 200: strict({ paused: runIds }) },
      },
    },
    async (request) => ({ paused: await storeOf(backend, request).paused(request.body.claims) }),
  );

  app.post(
    "/v1/workers/holdings",
    {
      ...route,
      schema: {
        tags,
        summary: "All claims of a worker: run ids with their claim ids",
        body: strict({ workerId }),
        response: { 200: answers.holdings },
      },
    },
    async (request) => ({ held: await storeOf(backend, request).heldClaims(request.body.workerId) }),
  );
}
