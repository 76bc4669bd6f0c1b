/** A worker commits outcomes of steps and records steps of workflows. */

import type { JournalEntry, RecordVerdict, Verdict } from "pawl/engine";
import { Type } from "typebox";
import { onLostAnswer } from "../http/long-poll.js";
import { strict } from "../http/schemas.js";
import * as answers from "./answer-schemas.js";
import { type Protocol, refuseBadValues, route, storeOf, tags } from "./protocol.js";
import { refuseCommit, refuseEntry, sendAllowed, toCommits, toEntries } from "./read-requests.js";
import { commit, entry, id } from "./request-schemas.js";
import { checkStoredSizes } from "./value-limits.js";

const maxBatch = 1_000;

export function commitRoutes({ app, backend, waiters }: Protocol): void {
  const { engine } = backend;

  app.post(
    "/v1/workers/commit",
    {
      ...route,
      schema: {
        tags,
        summary: "Commit outcomes of steps",
        body: strict({
          commits: Type.Array(commit, { minItems: 1, maxItems: maxBatch }),
          patient: Type.Boolean(),
        }),
        response: { 200: answers.verdicts },
      },
    },
    async (request, reply) => {
      const { body, caller } = request;
      checkStoredSizes(body.commits, "body.commits");
      const commits = toCommits(body.commits);
      const verdicts = await sendAllowed(
        commits,
        (one) => refuseCommit(one, caller),
        async (allowed) => {
          const answer = await refuseBadValues(() =>
            storeOf(backend, request).commit(allowed, { patient: body.patient }),
          );
          engine.hub.claimable(answer.claimable);
          return answer.verdicts;
        },
      );
      engine.sendHints(commits, verdicts);
      onLostAnswer(reply, () => {
        for (const [index, verdict] of verdicts.entries()) {
          const { next, queue = "default" } = commits[index]!;
          if (verdict.kind !== "committed" || verdict.handed === null || next === null) continue;
          waiters.release(queue, [verdict.handed], next.claimId);
        }
      });
      return { verdicts: verdicts.map(toSent) };
    },
  );

  app.post(
    "/v1/workers/overdue",
    {
      ...route,
      schema: {
        tags,
        summary: "Fail those of these claimed runs that are past their deadline",
        description: "The heartbeat reports such runs too, as cancelled. This asks for it at once",
        body: strict({ runIds: Type.Array(id, { minItems: 1, maxItems: maxBatch }) }),
        response: { 200: answers.overdue },
      },
    },
    async (request) => {
      const answer = await storeOf(backend, request).failOverdue(request.body.runIds);
      engine.hub.claimable(answer.claimable);
      engine.hub.overdue(answer.failed);
      return { failed: [...answer.failed], dueMs: answer.dueMs };
    },
  );

  app.post(
    "/v1/workers/record",
    {
      ...route,
      schema: {
        tags,
        summary: "Record steps in the journals of workflow runs",
        body: strict({
          entries: Type.Array(entry, { minItems: 1, maxItems: maxBatch }),
          patient: Type.Boolean(),
        }),
        response: { 200: answers.recordVerdicts },
      },
    },
    async (request) => {
      const { body, caller } = request;
      checkStoredSizes(body.entries, "body.entries");
      const entries = toEntries(body.entries);
      const verdicts = await sendAllowed(
        entries,
        (one) => refuseEntry(one, caller),
        (allowed) =>
          refuseBadValues(() => storeOf(backend, request).record(allowed, { patient: body.patient })),
      );
      for (const queue of invokedQueues(entries, verdicts)) engine.hub.hint(queue);
      return { verdicts };
    },
  );
}

/**
 * A worker that does not know `paused` must not execute the next step after its claim ended: for it
 * the claim is lost.
 */
function toSent(verdict: Verdict) {
  return (verdict.kind === "committed" || verdict.kind === "already") && verdict.paused === true
    ? { kind: "stale" as const, paused: true }
    : verdict;
}

/** The queues of the runs that workflows have invoked: there may be new work. */
function invokedQueues(
  entries: readonly JournalEntry[],
  verdicts: readonly RecordVerdict[],
): Set<string | null> {
  const invoked = entries.filter((_entry, index) => verdicts[index]?.kind === "pending");
  return new Set(invoked.flatMap(({ change }) => (change.op === "invoke" ? [change.child.queue] : [])));
}
