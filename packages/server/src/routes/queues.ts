/** Message queues: send, receive, acknowledge, change the visibility, count. */

import type { FastifyReply } from "fastify";
import { type Message, RunNotFound } from "pawl";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { countWaits, whenOver } from "../http/long-poll.js";
import type { Backend } from "../backend/backend.js";
import {
  ackBody,
  ackedSchema,
  extendBody,
  extendedSchema,
  messageParams,
  queueParams,
  receiptQuery,
  receiveBody,
  receivedSchema,
  sendBody,
  sentSchema,
  statsSchema,
  visibilityBody,
} from "./queue-schemas.js";
import { answers, strict } from "../http/schemas.js";

/** 16 MiB of messages, and room for the JSON around them. */
const maxBatchBytes = 17 * 1024 * 1024;
const tags = ["queues"];

export function queueRoutes(app: App, backend: Backend): void {
  const { queues } = backend.pawl;

  app.get(
    "/v1/queues",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "listQueues",
        summary: "List the queues that have messages",
        tags,
        response: answers({ 200: strict({ queues: Type.Array(statsSchema) }) }),
      },
    },
    async ({ caller }) => {
      const all = await queues.list();
      return { queues: all.filter(({ queue }) => caller.allows({ name: null, queue })) };
    },
  );

  app.get(
    "/v1/queues/:queue",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "getQueue",
        summary: "Count the messages of a queue",
        tags,
        params: queueParams,
        response: answers({ 200: statsSchema }),
      },
    },
    (request) => queues.stats(queueOf(request)),
  );

  app.post(
    "/v1/queues/:queue/messages",
    {
      config: { scope: "write", prefixes: "checked" },
      bodyLimit: maxBatchBytes,
      schema: {
        operationId: "sendMessages",
        summary: "Send a message, or up to 1,000",
        description: "All or none of them, in one transaction.",
        tags,
        params: queueParams,
        body: sendBody,
        response: answers({ 201: sentSchema }),
      },
    },
    async (request, reply) => {
      const items = Array.isArray(request.body) ? request.body : [request.body];
      const messages = await queues.sendMany(
        queueOf(request),
        items.map(({ delaySeconds, ...item }) => ({
          ...item,
          ...(delaySeconds === undefined ? {} : { delay: delaySeconds * 1_000 }),
        })),
      );
      return reply.code(201).send({ messages: [...messages] });
    },
  );

  app.post(
    "/v1/queues/:queue/receive",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "receiveMessages",
        summary: "Receive messages",
        description:
          "With `waitSeconds` it waits for the first message. Received messages stay in flight until their visibility ends.",
        tags,
        params: queueParams,
        body: receiveBody,
        response: answers({ 200: receivedSchema }),
      },
    },
    async (request, reply) => {
      const queue = queueOf(request);
      const { max, waitSeconds, visibilitySeconds, match, maxReceives } = request.body ?? {};
      if (waitSeconds !== undefined && waitSeconds > 0) countWaits(backend.waits, reply, 1);
      const messages = await queues.receive(queue, {
        max,
        maxReceives,
        match,
        wait: waitSeconds === undefined ? undefined : waitSeconds * 1_000,
        visibility: visibilitySeconds === undefined ? undefined : visibilitySeconds * 1_000,
        signal: whenOver(reply, backend.closing),
      });
      if (messages.length > 0) {
        // Lets a disconnect that arrived at the same time be handled first.
        await new Promise((resolve) => setImmediate(resolve));
        returnIfLost(backend, reply, queue, messages);
      }
      return { messages };
    },
  );

  app.post(
    "/v1/queues/:queue/ack",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "ackMessages",
        summary: "Acknowledge and delete messages",
        tags,
        params: queueParams,
        body: ackBody,
        response: answers({ 200: ackedSchema }),
      },
    },
    async (request) => {
      const { acked, refused } = await queues.ack(queueOf(request), request.body.messages);
      return { acked, refused: [...refused] };
    },
  );

  app.post(
    "/v1/queues/:queue/extend",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "extendMessages",
        summary: "Change how long messages stay invisible",
        tags,
        params: queueParams,
        body: extendBody,
        response: answers({ 200: extendedSchema }),
      },
    },
    async (request) => {
      const { messages, visibilitySeconds } = request.body;
      const { extended, refused } = await queues.extend(
        queueOf(request),
        messages,
        visibilitySeconds * 1_000,
      );
      return { extended, refused: [...refused] };
    },
  );

  app.delete(
    "/v1/queues/:queue/messages/:id",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "ackMessage",
        summary: "Acknowledge and delete a message",
        tags,
        params: messageParams,
        querystring: receiptQuery,
        response: answers({ 200: strict({ acked: Type.Boolean() }) }),
      },
    },
    async (request) => {
      const { id } = request.params;
      const queue = queueOf(request);
      const { acked } = await queues.ack(queue, { id, receipt: request.query.receipt });
      if (acked === 0) throw noSuchMessage(queue, id);
      return { acked: true };
    },
  );

  app.patch(
    "/v1/queues/:queue/messages/:id",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "extendMessage",
        summary: "Change how long a message stays invisible",
        tags,
        params: messageParams,
        querystring: receiptQuery,
        body: visibilityBody,
        response: answers({ 200: strict({ extended: Type.Boolean() }) }),
      },
    },
    async (request) => {
      const { id } = request.params;
      const queue = queueOf(request);
      const { receipt } = request.query;
      const { extended } = await queues.extend(
        queue,
        { id, receipt },
        request.body.visibilitySeconds * 1_000,
      );
      if (extended === 0) throw noSuchMessage(queue, id);
      return { extended: true };
    },
  );
}

/** The queue in the path, if the caller's token allows it. */
function queueOf({ caller, params }: { caller: Caller; params: { queue: string } }): string {
  caller.require({ name: null, queue: params.queue });
  return params.queue;
}

/** Returns messages to the queue if their receiver disconnected before the answer reached it. */
function returnIfLost(
  { engine, logger }: Backend,
  reply: FastifyReply,
  queue: string,
  messages: readonly Message[],
): void {
  const putBack = (): void => {
    if (reply.raw.writableFinished) return;
    const receipts = messages.map(({ id, receipt }) => ({ queue, id, receipt, visibilityMs: 0 }));
    engine.store.extend(receipts, { unreceived: true }).then(
      () => engine.hub.visible(queue, { isOld: true }),
      (error: unknown) =>
        logger.warn(
          { err: error },
          "pawl: messages for a receiver that disconnected stay in flight until their visibility ends",
        ),
    );
  };
  if (reply.raw.destroyed) putBack();
  else reply.raw.once("close", putBack);
}

function noSuchMessage(queue: string, id: string): RunNotFound {
  return new RunNotFound(
    `there is no message ${id} with this receipt in the queue ${queue}: it was acknowledged, or its visibility ended and another receiver has it`,
  );
}
