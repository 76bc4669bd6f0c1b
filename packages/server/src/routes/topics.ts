/** Topics and who has subscribed to them. */

import { RunNotFound } from "pawl";
import { subscribe } from "pawl/engine";
import type { App } from "../app.js";
import type { Parts } from "../parts.js";
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
} from "../queue-schemas.js";
import { answers, idempotencyHeader, strict } from "../schemas.js";
import { Type } from "typebox";

const tags = ["topics"];
const deletedSchema = strict({ deleted: Type.Boolean() });

export function topicRoutes(app: App, { pawl, store }: Parts): void {
  const { topics, subscriptions } = pawl;

  app.post(
    "/v1/topics/:topic/messages",
    {
      config: { scope: "write" },
      schema: {
        operationId: "publish",
        summary: "Publish to a topic",
        description:
          "In one transaction: a run for each workflow that has subscribed, a message for each queue, a delivery for each URL.",
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
      const make: Parameters<typeof subscribe>[0] = (pattern, target, secret) =>
        store.subscribe(pattern, target, secret, caller.tokenName);
      const subscribed = await subscribe(make, params.pattern, body);
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
        response: answers({ 200: subscriptionsSchema }),
      },
    },
    async (request) => {
      const { pattern } = request.params;
      return { subscriptions: await subscriptions.list({ pattern }) };
    },
  );

  app.delete(
    "/v1/topics/:pattern/subscriptions/:id",
    {
      config: { scope: "write" },
      schema: {
        operationId: "unsubscribe",
        summary: "End a subscription of this pattern",
        tags,
        params: patternSubscriptionParams,
        response: answers({ 200: deletedSchema }),
      },
    },
    async (request) => {
      const { pattern, id } = request.params;
      const listed = await subscriptions.list({ pattern });
      if (!listed.some((one) => one.id === id) || !(await store.unsubscribe(id, pattern))) {
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
        response: answers({ 200: subscriptionsSchema }),
      },
    },
    async () => ({ subscriptions: await subscriptions.list() }),
  );

  app.delete(
    "/v1/subscriptions/:id",
    {
      config: { scope: "write" },
      schema: {
        operationId: "unsubscribeById",
        summary: "End a subscription",
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
}
