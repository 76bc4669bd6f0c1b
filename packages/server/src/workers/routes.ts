/**
 * The worker protocol: what `store/http/http-worker-store.ts` of the library calls, and workers in other
 * languages. Each route carries one call to the database and decides nothing: the id of a claim, made by
 * the worker, is the proof that it holds the run, and the guards in the database judge it. Calls are made
 * in the name of the caller's token (`ownedBy`): for its own workers and their claims only.
 */

import type { FastifyRequest } from "fastify";
import { InvalidOption, Unavailable } from "pawl";
import { type PostgresStore, setLimit, sqlState, toJson } from "pawl/engine";
import { Type } from "typebox";
import { announceCommits, announceRecords } from "./announce.js";
import type { App } from "../http/app.js";
import { countWaits, goneSignal, ifLost } from "../http/long-poll.js";
import type { Parts } from "../backend/backend.js";
import { strict } from "../http/schemas.js";
import { shownChildren } from "./visible-children.js";
import { checkStored } from "./value-limits.js";
import { Waiters } from "./waiters.js";
import * as answers from "./answer-schemas.js";
import { checkTwice, refuseCommit, refuseEntry, sendAllowed, toCommits, toEntries } from "./read-requests.js";
import * as schemas from "./request-schemas.js";

const { id, int, shortName, workerId } = schemas;

/** A batch of commits with their states; the JSON of a value is sent as a text, which makes it longer. */
const bodyLimit = 64 * 1024 * 1024;
const maxBatch = 1_000;
const maxWaitSeconds = 30;

const claims = strict({ claims: Type.Array(schemas.heldClaim, { maxItems: 20_000 }) });
const runIds = Type.Array(id);
/** The host, the process and the release of a worker, or whatever else is to be known of it. */
const info = Type.Object(
  {},
  {
    additionalProperties: true,
    description: "About the worker: any members, at most 10,000 characters of JSON",
  },
);
const done = strict({});

/** `hurry`: a worker has come, and perhaps its runs wait. */
export function workerRoutes(app: App, parts: Parts, hurry: () => void): void {
  const { store, beats, hub, logger } = parts;
  const looksPerToken = Math.ceil(parts.connections / 4);
  const waiters = new Waiters({ store, hub, logger, looksPerToken });
  parts.closing.addEventListener("abort", () => waiters.beginClosing(), { once: true });
  app.addHook("onClose", () => waiters.close());

  const route = { config: { scope: "worker", prefixes: "checked" }, bodyLimit } as const;
  /** The calls of a worker, in the name of the token that they come with. */
  const storeOf = ({ caller }: FastifyRequest): PostgresStore => store.ownedBy(caller.tokenName);
  const tags = ["workers"];

  app.post(
    "/v1/workers/register",
    {
      ...route,
      schema: {
        tags,
        summary: "Make a worker known; its id must be new",
        body: strict({
          workerId,
          leaseMs: Type.Integer({
            minimum: 1_000,
            maximum: 86_400_000,
            description: "at least a second: a shorter lease passes whenever anything is busy for a moment",
          }),
          queues: Type.Array(shortName, { minItems: 1, maxItems: 1_000 }),
          info,
          definitions: Type.Array(schemas.definition, { minItems: 1, maxItems: 1_000 }),
        }),
        response: { 200: done },
      },
    },
    async (request) => {
      const { body, caller } = request;
      for (const queue of body.queues) caller.demand({ queue });
      for (const { name, queue } of body.definitions) caller.demand({ name, queue });
      const { text } = toJson(body.info, "body.info");
      if (text.length > 10_000)
        throw new InvalidOption("body.info must be at most 10,000 characters of JSON");
      checkTwice(body.definitions);
      await refusing(() => storeOf(request).register({ ...body, info: text }));
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
        summary: "A worker has stopped: what it holds is let go",
        body: strict({ workerId }),
        response: {
          200: strict({
            held: Type.Integer({
              description: "runs that it holds because somebody has them locked: call again",
            }),
          }),
        },
      },
    },
    async (request) => {
      const held = await storeOf(request).unregister(request.body.workerId);
      waiters.rewind();
      hub.nudge(null);
      return { held };
    },
  );

  app.post(
    "/v1/workers/heartbeat",
    {
      ...route,
      schema: {
        tags,
        summary: "Hold all claims of a worker; tells what was cancelled and, if asked, what it holds",
        body: strict({ workerId, since: Type.Union([id, Type.Literal("0"), Type.Null()]) }),
        response: { 200: answers.beat },
      },
    },
    ({ body, caller }) => beats.ownedBy(caller.tokenName).beat(body.workerId, body.since),
  );

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
          definitions: Type.Array(strict({ name: shortName, version: schemas.version }), {
            minItems: 1,
            maxItems: 1_000,
          }),
          waitSeconds: Type.Optional(Type.Number({ minimum: 0, maximum: maxWaitSeconds })),
        }),
        response: { 200: answers.claimed },
      },
    },
    async ({ body, caller }, reply) => {
      const { definitions, waitSeconds = 0, ...ask } = body;
      for (const { name } of definitions) caller.demand({ name, queue: ask.queue });
      const names = definitions.map(({ name }) => name);
      const versions = definitions.map(({ version }) => version);
      if (waitSeconds > 0) countWaits(parts.waits, reply, 1);
      const gone = goneSignal(reply);
      const found = await waiters.claim(
        { ...ask, owner: caller.tokenName, names, versions },
        waitSeconds * 1_000,
        gone,
      );
      ifLost(reply, () => waiters.letGo(body.queue, found.runs, body.claimId));
      return { runs: [...found.runs], more: found.more };
    },
  );

  app.post(
    "/v1/workers/claim/end",
    {
      ...route,
      schema: {
        tags,
        summary: "Answer a claim that waits at once, with what it has",
        body: strict({ workerId, claimId: id }),
        response: { 200: done },
      },
    },
    async ({ body, caller }) => {
      waiters.end({ ...body, owner: caller.tokenName });
      return {};
    },
  );

  app.post(
    "/v1/workers/commit",
    {
      ...route,
      schema: {
        tags,
        summary: "Commit outcomes of steps",
        body: strict({
          commits: Type.Array(schemas.commit, { minItems: 1, maxItems: maxBatch }),
          patient: Type.Boolean(),
        }),
        response: { 200: answers.verdicts },
      },
    },
    async (request, reply) => {
      const { body, caller } = request;
      checkStored(body.commits, "body.commits");
      const commits = toCommits(body.commits);
      const verdicts = await sendAllowed(
        commits,
        (one) => refuseCommit(one, caller),
        async (allowed) => {
          const answer = await refusing(() => storeOf(request).commit(allowed, { patient: body.patient }));
          hub.claimable(answer.claimable);
          return answer.verdicts;
        },
      );
      announceCommits(hub, commits, verdicts);
      ifLost(reply, () => {
        for (const [index, verdict] of verdicts.entries()) {
          const { next, queue = "default" } = commits[index]!;
          if (verdict.kind !== "committed" || verdict.handed === null || next === null) continue;
          waiters.letGo(queue, [verdict.handed], next.claimId);
        }
      });
      return { verdicts };
    },
  );

  app.post(
    "/v1/workers/record",
    {
      ...route,
      schema: {
        tags,
        summary: "Write into the journals of workflow runs",
        body: strict({
          entries: Type.Array(schemas.entry, { minItems: 1, maxItems: maxBatch }),
          patient: Type.Boolean(),
        }),
        response: { 200: answers.recordVerdicts },
      },
    },
    async (request) => {
      const { body, caller } = request;
      checkStored(body.entries, "body.entries");
      const entries = toEntries(body.entries);
      const verdicts = await sendAllowed(
        entries,
        (one) => refuseEntry(one, caller),
        (allowed) => refusing(() => storeOf(request).record(allowed, { patient: body.patient })),
      );
      announceRecords(hub, entries, verdicts);
      return { verdicts };
    },
  );

  app.post(
    "/v1/workers/journal",
    {
      ...route,
      schema: {
        tags,
        summary: "A page of what a workflow run has recorded, by name; empty at the end",
        body: strict({ runId: id, after: Type.String({ maxLength: 256, pattern: "^[^\\0]*$" }) }),
        response: { 200: answers.journalPage },
      },
    },
    async (request) => ({ steps: await storeOf(request).journal(request.body.runId, request.body.after) }),
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
      seqs: Object.fromEntries(await storeOf(request).inboxSeqs(request.body.runIds)),
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
    async (request) => ({ signals: await storeOf(request).inbox(request.body.runId, request.body) }),
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
      const children = await storeOf(request).children(request.body.runId, request.body.after);
      return { children: await shownChildren(store, request.caller, children) };
    },
  );

  app.post(
    "/v1/workers/release",
    {
      ...route,
      schema: {
        tags,
        summary: "Let claims go without an outcome",
        body: claims,
        response: { 200: strict({ released: runIds }) },
      },
    },
    async (request) => {
      const released = await storeOf(request).release(request.body.claims);
      if (released.length > 0) {
        waiters.rewind();
        hub.nudge(null);
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
        summary: "Which of these claims are held still",
        body: claims,
        response: { 200: strict({ held: runIds }) },
      },
    },
    async (request) => ({ held: await storeOf(request).held(request.body.claims) }),
  );

  app.post(
    "/v1/workers/holdings",
    {
      ...route,
      schema: {
        tags,
        summary: "Everything that a worker holds: runs with their claim ids",
        body: strict({ workerId }),
        response: { 200: answers.holdings },
      },
    },
    async (request) => ({ held: await storeOf(request).holdings(request.body.workerId) }),
  );

  app.post(
    "/v1/workers/limits",
    {
      ...route,
      schema: {
        tags,
        summary: "Set a rate limit that a worker was started with",
        body: strict({
          name: shortName,
          allowed: Type.Number({ exclusiveMinimum: 0, maximum: 1e9 }),
          periodMs: Type.Number({ minimum: 1, maximum: 36_525 * 86_400_000 }),
          burst: Type.Number({ minimum: 1, maximum: 1e9 }),
        }),
        response: { 200: done },
      },
    },
    async ({ body, caller }) => {
      caller.demand({ name: body.name, queue: null });
      await setLimit(store, body);
      hub.nudge(null);
      return {};
    },
  );
}

/** Values that the database cannot take are the caller's mistake, not an outage. */
async function refusing<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const state = error instanceof Unavailable ? sqlState(error.cause) : undefined;
    if (state !== undefined && /^2[23]/.test(state)) {
      throw new InvalidOption(`the database refuses a value: ${(error as Error).message}`, { cause: error });
    }
    throw error;
  }
}
