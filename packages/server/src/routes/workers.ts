/**
 * The worker protocol: what `store/http/http-worker-store.ts` of the library calls. Each route carries one call to the database and
 * decides nothing: the id of a claim, made by the worker, is the proof that it holds the run, and the guards in the database judge it.
 */

import type { FastifyReply } from "fastify";
import { InvalidOption, Unavailable } from "pawl";
import { type Commit, type JournalEntry, setLimit, sqlState } from "pawl/engine";
import { Type } from "typebox";
import { announceCommits, announceRecords } from "../announce.js";
import type { App } from "../app.js";
import type { Parts } from "../parts.js";
import { Waiters } from "../waiters.js";
import * as schemas from "../worker-schemas.js";

const { id, int, shortName, strict, workerId } = schemas;

/** A batch of commits with their states; the JSON of a value is sent as a text, which makes it longer. */
const bodyLimit = 64 * 1024 * 1024;
const maxBatch = 1_000;
const maxWaitSeconds = 30;

const claims = strict({ claims: Type.Array(schemas.heldClaim, { maxItems: 20_000 }) });
const texts = Type.Array(Type.String());
const anything = Type.Object({}, { additionalProperties: true });
const done = strict({});

/** `hurry`: a worker has come, and perhaps its runs wait. */
export function workerRoutes(app: App, parts: Parts, hurry: () => void): void {
  const { store, beats, hub, logger } = parts;
  const waiters = new Waiters(store, hub, logger);
  parts.closing.addEventListener("abort", () => waiters.beginClosing(), { once: true });
  app.addHook("onClose", () => waiters.close());

  const route = { config: { scope: "worker" }, bodyLimit } as const;
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
          leaseMs: Type.Integer({ minimum: 100, maximum: 86_400_000 }),
          queues: Type.Array(shortName, { minItems: 1, maxItems: 1_000 }),
          info: anything,
          definitions: Type.Array(schemas.definition, { minItems: 1, maxItems: 1_000 }),
        }),
        response: { 200: done },
      },
    },
    async ({ body }) => {
      const info = JSON.stringify(body.info);
      if (info.length > 10_000)
        throw new InvalidOption("body.info must be at most 10,000 characters of JSON");
      await refusing(() => store.register({ ...body, info }));
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
    async ({ body }) => {
      const held = await store.unregister(body.workerId);
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
        response: {
          200: strict({
            alive: Type.Boolean(),
            cancelled: Type.Record(Type.String(), Type.String()),
            held: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
            databaseHeld: Type.Boolean({
              description: "nothing is claimed, and no further step is to begin",
            }),
            timeline: Type.Union([Type.String(), Type.Null()], {
              description: "of the database's server; when it changes, compare everything: holdings",
            }),
          }),
        },
      },
    },
    ({ body }) => beats.beat(body.workerId, body.since),
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
        response: { 200: strict({ runs: Type.Array(anything), more: Type.Boolean() }) },
      },
    },
    async ({ body }, reply) => {
      const { definitions, waitSeconds = 0, ...ask } = body;
      const names = definitions.map(({ name }) => name);
      const versions = definitions.map(({ version }) => version);
      const gone = goneSignal(reply);
      const found = await waiters.claim({ ...ask, names, versions }, waitSeconds * 1_000, gone);
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
    async ({ body }) => {
      waiters.end(body.workerId, body.claimId);
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
        response: { 200: strict({ verdicts: Type.Array(anything) }) },
      },
    },
    async ({ body }, reply) => {
      const commits = body.commits.map(toCommit);
      checkOnce(commits);
      const { verdicts, claimable } = await refusing(() => store.commit(commits, { patient: body.patient }));
      hub.claimable(claimable);
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
        response: { 200: strict({ verdicts: Type.Array(anything) }) },
      },
    },
    async ({ body }) => {
      const entries = body.entries.map(toEntry);
      const verdicts = await refusing(() => store.record(entries, { patient: body.patient }));
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
        response: { 200: strict({ steps: Type.Array(anything) }) },
      },
    },
    async ({ body }) => ({ steps: await store.journal(body.runId, body.after) }),
  );

  app.post(
    "/v1/workers/inbox-seqs",
    {
      ...route,
      schema: {
        tags,
        summary: "The seq of the last signal of each run",
        body: strict({ runIds: Type.Array(id, { maxItems: 20_000 }) }),
        response: { 200: strict({ seqs: Type.Record(Type.String(), int) }) },
      },
    },
    async ({ body }) => ({ seqs: Object.fromEntries(await store.inboxSeqs(body.runIds)) }),
  );

  app.post(
    "/v1/workers/inbox",
    {
      ...route,
      schema: {
        tags,
        summary: "A page of the inbox of a run, oldest first; empty at the end",
        body: strict({ runId: id, after: int, upTo: int }),
        response: { 200: strict({ signals: Type.Array(anything) }) },
      },
    },
    async ({ body }) => ({ signals: await store.inbox(body.runId, body) }),
  );

  app.post(
    "/v1/workers/children",
    {
      ...route,
      schema: {
        tags,
        summary: "A page of the children of the last spawn of a run, in order; empty at the end",
        body: strict({ runId: id, after: Type.Integer({ minimum: -1, maximum: 2_147_483_647 }) }),
        response: { 200: strict({ children: Type.Array(anything) }) },
      },
    },
    async ({ body }) => ({ children: await store.children(body.runId, body.after) }),
  );

  app.post(
    "/v1/workers/release",
    {
      ...route,
      schema: {
        tags,
        summary: "Let claims go without an outcome",
        body: claims,
        response: { 200: strict({ released: texts }) },
      },
    },
    async ({ body }) => {
      const released = await store.release(body.claims);
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
        response: { 200: strict({ held: texts }) },
      },
    },
    async ({ body }) => ({ held: await store.held(body.claims) }),
  );

  app.post(
    "/v1/workers/holdings",
    {
      ...route,
      schema: {
        tags,
        summary: "Everything that a worker holds: runs with their claim ids",
        body: strict({ workerId }),
        response: { 200: strict({ held: Type.Record(Type.String(), Type.String()) }) },
      },
    },
    async ({ body }) => ({ held: await store.holdings(body.workerId) }),
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
    async ({ body }) => {
      await setLimit(store, body);
      hub.nudge(null);
      return {};
    },
  );
}

type SentCommit = Omit<Commit, "transition"> & { readonly transition: unknown };
type SentEntry = Omit<JournalEntry, "change"> & { readonly change: unknown };

function toCommit(sent: SentCommit, index: number): Commit {
  return { ...sent, transition: schemas.toTransition(sent.transition, `body.commits.${index}.transition`) };
}

function toEntry(sent: SentEntry, index: number): JournalEntry {
  return { ...sent, change: schemas.toChange(sent.change, `body.entries.${index}.change`) };
}

/** What `commit` demands: at most one transition of each run, and claims for successors of one worker. */
function checkOnce(commits: readonly Commit[]): void {
  const seen = new Set(commits.map(({ runId }) => runId));
  if (seen.size < commits.length)
    throw new InvalidOption("body.commits has more than one transition of a run");
  const workers = new Set(commits.flatMap(({ next }) => (next === null ? [] : [next.workerId])));
  if (workers.size > 1) throw new InvalidOption("body.commits names more than one worker in next");
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

/** Aborted when the caller has gone before it had its answer. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

/** Calls `letGo` if the answer does not reach the caller. */
function ifLost(reply: FastifyReply, letGo: () => void): void {
  if (reply.raw.closed || reply.raw.destroyed) letGo();
  else reply.raw.once("close", () => reply.raw.writableFinished || letGo());
}
