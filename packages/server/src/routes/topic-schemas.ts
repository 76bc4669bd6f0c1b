/** Topics and subscriptions as schemas: the requests and answers of the routes about topics. */

import type { Published, Subscribed, Subscription } from "pawl";
import { Type } from "typebox";
import { date, json, nextCursor, strict } from "../http/schemas.js";

export const topicParams = strict({ topic: Type.String({ description: "Words separated by dots" }) });
export const publishBody = strict({
  body: json("Any JSON"),
  dedupKey: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description: "As the header idempotency-key: for a day, the same key publishes once",
    }),
  ),
});
export const publishedSchema = Type.Unsafe<Published>(
  strict({
    runs: Type.Integer({ description: "Runs started" }),
    messages: Type.Integer({ description: "Messages sent to queues" }),
    deliveries: Type.Integer({ description: "Deliveries to URLs started" }),
    created: Type.Boolean({ description: "False: this key was published before" }),
  }),
);

export const patternParams = strict({
  pattern: Type.String({
    description: "Words separated by dots; * matches one word, # at the end any number",
  }),
});
export const subscriptionParams = strict({ id: Type.String({ description: "The id of the subscription" }) });
export const patternSubscriptionParams = strict({
  pattern: Type.String(),
  id: Type.String({ description: "The id of the subscription" }),
});

const workflowTarget = { type: Type.Literal("workflow"), name: Type.String() };
const queueTarget = { type: Type.Literal("queue"), queue: Type.String() };
const httpTarget = { type: Type.Literal("http"), url: Type.String({ maxLength: 2_000 }) };

export const targetBody = Type.Union([
  strict(workflowTarget),
  strict(queueTarget),
  strict({
    ...httpTarget,
    secret: Type.Optional(
      Type.String({
        maxLength: 256,
        description:
          "Signs the deliveries; at least 24 bytes, whsec_ and base64 or any text. Never returned. Without it the subscription keeps its present secret",
      }),
    ),
  }),
]);
export const subscribedSchema = Type.Unsafe<Subscribed>(
  strict({
    id: Type.String(),
    created: Type.Boolean({ description: "False: this pattern and target were subscribed before" }),
  }),
);
export const subscriptionsSchema = strict({
  subscriptions: Type.Array(
    Type.Unsafe<Subscription>(
      strict(
        {
          id: Type.String(),
          pattern: Type.String(),
          target: Type.Union([strict(workflowTarget), strict(queueTarget), strict(httpTarget)]),
          hasSecret: Type.Boolean({ description: "Whether deliveries are signed" }),
          createdAt: date,
        },
        { title: "Subscription" },
      ),
    ),
  ),
  cursor: nextCursor,
});
