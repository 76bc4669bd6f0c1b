/** Topics: publish, subscribe, list and delete subscriptions. */

import { RunNotFound } from "pawl";
import { check } from "pawl/engine";
import type { App } from "../http/app.js";
import type { Backend } from "../backend/backend.js";
import {
  patternParams,
  patternSubscriptionParams,
  publishBody,
  publishedSchema,
  subscribedSchema,
  subscriptionParams,
  subscriptionsSchema,
  targetBody,
  topicParams,
} from "./topic-schemas.js";
import { RequestError } from "../http/problems.js";
import { answers, idempotencyHeader, pageCursor, strict } from "../http/schemas.js";
import { Type } from "typebox";

const tags = ["topics"];
/** Subscriptions per page: with the longest URLs a page stays below 16 MiB. */
const pageSize = 5_000;
const pageQuery = strict({ cursor: pageCursor });
const deletedSchema = strict({ deleted: Type.Boolean() });

export function topicRoutes(app: App, { pawl, engine }: Backend): void {
  const { topics, subscriptions } = pawl;

  app.post(
    "/v1/topics/:topic/messages",
    {
      config: { scope: "write" },
      schema: {
        operationId: "publish",
        summary: "Publish to a topic",
        description:
          "In one transaction: a run for each subscribed workflow, a message for each queue, a delivery for each URL.",
        tags,
        params: topicParams,
        headers: idempotencyHeader,
        body: publishBody,
        response: answers({ 200: publishedSchema, 201: publishedSchema }),
      },
    },
    async (request, reply) => {
      const { body, dedupKey = request.headers["idempotency-key"] } = request.body;
      const published = await topics.publish(request.params.topic, body, { dedupKey });
      return reply.code(published.created ? 201 : 200).send(published);
    },
  );

  app.post(
    "/v1/topics/:pattern/subscriptions",
    {
      config: { scope: "write" },
      schema: {
        operationId: "subscribe",
        summary: "Subscribe a workflow, a queue or a URL to a pattern of topics",
        tags,
        params: patternParams,
        body: targetBody,
        response: answers({ 200: subscribedSchema, 201: subscribedSchema }),
      },
    },
    async (request, reply) => {
      const { params, body, caller } = request;
      const subscribed = await engine.subscribe(params.pattern, body, caller.tokenName);
      return reply.code(subscribed.created ? 201 : 200).send(subscribed);
    },
  );

  app.get(
    "/v1/topics/:pattern/subscriptions",
    {
      config: { scope: "read" },
      schema: {
        operationId: "listSubscriptionsOfPattern",
        summary: "List the subscriptions with exactly this pattern",
        tags,
        params: patternParams,
        querystring: pageQuery,
        response: answers({ 200: subscriptionsSchema }),
      },
    },
    (request) => list(check.topicPattern(request.params.pattern), request.query.cursor),
  );

  app.delete(
    "/v1/topics/:pattern/subscriptions/:id",
    {
      config: { scope: "write" },
      schema: {
        operationId: "unsubscribe",
        summary: "Delete a subscription of this pattern",
        tags,
        params: patternSubscriptionParams,
        response: answers({ 200: deletedSchema }),
      },
    },
    async (request) => {
      const { pattern, id } = request.params;
      const listed = await subscriptions.list({ pattern });
      if (!listed.some((one) => one.id === id) || !(await engine.store.unsubscribe(id, pattern))) {
        throw new RunNotFound(`there is no subscription ${id} of the pattern ${pattern}`);
      }
      return { deleted: true };
    },
  );

  app.get(
    "/v1/subscriptions",
    {
      config: { scope: "read" },
      schema: {
        operationId: "listSubscriptions",
        summary: "List all subscriptions",
        tags,
        querystring: pageQuery,
        response: answers({ 200: subscriptionsSchema }),
      },
    },
    (request) => list(null, request.query.cursor),
  );

  app.delete(
    "/v1/subscriptions/:id",
    {
      config: { scope: "write" },
      schema: {
        operationId: "unsubscribeById",
        summary: "Delete a subscription",
        tags,
        params: subscriptionParams,
        response: answers({ 200: deletedSchema }),
      },
    },
    async (request) => {
      await subscriptions.delete(request.params.id);
      return { deleted: true };
    },
  );

  async function list(pattern: string | null, cursor?: string) {
    const after = cursor === undefined ? "0" : Buffer.from(cursor, "base64url").toString();
    if (!/^(0|[1-9]\d{0,17})$/.test(after)) {
      const message = "query.cursor must be the cursor that the previous page returned, unchanged";
      throw new RequestError(422, "InvalidOption", message, "query.cursor");
    }
    const found = await engine.store.subscriptions({ pattern, after, limit: pageSize });
    const last = found.length < pageSize ? undefined : found.at(-1);
    return {
      subscriptions: found,
      cursor: last === undefined ? null : Buffer.from(last.id).toString("base64url"),
    };
  }
}
