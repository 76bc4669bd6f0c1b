/** Server-sent events: `GET /v1/events` tells starts, ends and changes of runs as they happen. */

import type { Readable } from "node:stream";
import { InvalidOption } from "pawl";
import { type ChangePosition, check } from "pawl/engine";
import { Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import { Budget, shareOf } from "../http/budget.js";
import { answers, oneOf, strict } from "../http/schemas.js";
import { ChangeFeed, maxChanges } from "./change-feed.js";
import { EventStream, readEventId } from "./event-stream.js";

/** How many streams callers may have open at once. */
const streams = { perCaller: 20, inAll: 500 };
const maxRuns = 50;
/** A stream resumes where it ended within this time. */
const resumeUs = 15 * 60 * 1_000_000;

const eventStream = {
  description: "A stream of server-sent events",
  content: {
    "text/event-stream": {
      schema: Type.Unsafe<Readable>({
        type: "string",
        title: "EventStream",
        description:
          "Messages `changes` with data { events: [{ runId, name, version, queue, change, status, phase, step, at }], more }, " +
          "`reset` (read everything again) and `end` with data { reason: slow | expired | closing }.",
      }),
    },
  },
};

export function eventRoutes(app: App, { engine, logger, closing }: Backend): void {
  const feed = new ChangeFeed(engine.store.changes, logger);
  const budget = new Budget({
    ...streams,
    what: "streams of events",
    advice: "close some of them, or poll",
  });
  app.get(
    "/v1/events",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "streamEvents",
        summary: "Changes of runs as server-sent events",
        description:
          "Starts and ends of runs; with runId every change of these runs. At most one message a second with at most 100 " +
          "events; `more` says how many were left out. An event may come twice. The header last-event-id resumes a stream. " +
          "The server ends a stream of a reader that is too slow, and every stream after 15 minutes.",
        tags: ["reports"],
        querystring: strict({
          name: Type.Optional(Type.String({ description: "Only runs of this definition" })),
          queue: Type.Optional(Type.String({ description: "Only runs of this queue" })),
          status: Type.Optional(oneOf(["running", "completed", "failed", "cancelled"] as const)),
          runId: Type.Optional(
            Type.String({ description: `Every change of these runs: at most ${maxRuns} ids, with commas` }),
          ),
        }),
        headers: Type.Object({ "last-event-id": Type.Optional(Type.String()) }),
        response: answers({ 200: eventStream }),
      },
    },
    async (request, reply) => {
      const { caller, query, headers } = request;
      const { name, queue, status } = query;
      const runIds = query.runId === undefined ? [] : readRunIds(query.runId);
      const share = budget.take(shareOf(request), 1);
      const stream = new EventStream({
        name,
        queue,
        status,
        runIds,
        allows: (run) => caller.allows({ name: run.name, queue: run.queue }),
        isPart: caller.hasPrefixes,
      });
      const onClosing = (): void => stream.end("closing");
      let remove = (): void => {};
      stream.body.once("close", () => {
        closing.removeEventListener("abort", onClosing);
        remove();
        share.end();
      });
      let from: ChangePosition;
      try {
        from = await resume(stream, headers["last-event-id"]);
      } catch (error) {
        stream.body.destroy();
        throw error;
      }
      if (!stream.body.destroyed) remove = feed.add(stream, from);
      closing.addEventListener("abort", onClosing);
      if (closing.aborted) onClosing();
      void reply.header("x-accel-buffering", "no").type("text/event-stream");
      return reply.send(stream.body);
    },
  );

  /**
   * Sends what happened since the message with this id. Answers how far that went: from there on the
   * feed tells everything, also what happens before its first look.
   */
  async function resume(stream: EventStream, id: string | undefined): Promise<ChangePosition> {
    const now = await engine.store.changes.changes(null, maxChanges);
    if (id === undefined || id === "") return now.position;
    const after = readEventId(id);
    if (after === null || Number(now.position.us) - Number(after.us) > resumeUs) {
      stream.reset();
      return now.position;
    }
    const found = await engine.store.changes.changes({ after, from: after }, maxChanges);
    stream.onChanges(found);
    return found.position;
  }
}

function readRunIds(text: string): string[] {
  const ids = [...new Set(text.split(","))];
  if (ids.length > maxRuns) {
    throw new InvalidOption(`runId must have at most ${maxRuns} ids, not ${ids.length}: open another stream`);
  }
  return ids.map((id) => check.runId(id));
}
