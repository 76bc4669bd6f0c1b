/** Messages, queues, topics and subscriptions as they go over the wire. */

import type { Json, Message, Published, QueueStats, SentMessage, Subscribed, Subscription } from "pawl";
import { Type } from "typebox";
import { strict } from "../http/schemas.js";

const nullableText = Type.Union([Type.String(), Type.Null()]);
const date = Type.Unsafe<Date>({ type: "string", format: "date-time" });
const json = (description: string) => Type.Unsafe<Json>({ description });
const seconds = (description: string, maximum: number) =>
  Type.Number({ minimum: 0, maximum, description: `${description}, in seconds` });

/** A century. */
const maxDelay = 3_155_760_000;
const visibility = (description: string) => seconds(description, 43_200);

export const queueParams = strict({ queue: Type.String({ description: "The name of the queue" }) });
export const messageParams = strict({
  queue: Type.String({ description: "The name of the queue" }),
  id: Type.String({ description: "The id of the message" }),
});
export const receiptQuery = strict({ receipt: Type.String({ description: "As receive gave it" }) });

const dedupKey = (description: string) => Type.String({ minLength: 1, maxLength: 512, description });

const outgoing = strict(
  {
    body: json("Any JSON"),
    delaySeconds: Type.Optional(seconds("Not visible before this has passed", maxDelay)),
    group: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "Messages of one group are received in order, one at a time",
      }),
    ),
    dedupKey: Type.Optional(dedupKey("While a message with this key is in the queue, no second one is sent")),
  },
  { title: "Message" },
);

export const sendBody = Type.Union([outgoing, Type.Array(outgoing, { maxItems: 1_000 })]);

export const sentSchema = strict(
  {
    messages: Type.Array(
      Type.Unsafe<SentMessage>(
        strict({
          id: Type.String(),
          created: Type.Boolean({
            description: "False: a message with this dedup key is there, and this is its id",
          }),
        }),
      ),
    ),
  },
  { description: "In the order of the request" },
);

export const receiveBody = Type.Union([
  strict({
    max: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "Default 10" })),
    waitSeconds: Type.Optional(seconds("How long to wait for the first message. Default 0", 30)),
    visibilitySeconds: Type.Optional(visibility("How long nobody else receives them. Default 30")),
    match: Type.Optional(json("Only messages whose body contains this")),
    maxReceives: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: "What was received so often goes to the dead-letter queue. Default 10",
      }),
    ),
  }),
  Type.Null(),
]);

export const receivedSchema = strict({
  messages: Type.Array(
    Type.Unsafe<Message>(
      strict(
        {
          id: Type.String(),
          body: json("As it was sent"),
          receipt: Type.String({ description: "For ack and change of visibility" }),
          receives: Type.Integer({ description: "How often it was received, this time included" }),
          group: nullableText,
          sentAt: date,
          from: Type.Union([Type.String(), Type.Null()], {
            description: "In a dead-letter queue: where it came from",
          }),
        },
        { title: "ReceivedMessage" },
      ),
    ),
  ),
});

const named = Type.Array(strict({ id: Type.String(), receipt: Type.String() }), { maxItems: 1_000 });
const refused = Type.Array(Type.String(), {
  description: "The ids of those that are gone or have another receipt",
});

export const ackBody = strict({ messages: named });
export const ackedSchema = strict({ acked: Type.Integer(), refused });
export const extendBody = strict({
  messages: named,
  visibilitySeconds: visibility("From now on; 0 gives them back"),
});
export const extendedSchema = strict({ extended: Type.Integer(), refused });
export const visibilityBody = strict({
  visibilitySeconds: visibility("From now on; 0 gives it back"),
});

export const statsSchema = Type.Unsafe<QueueStats>(
  strict(
    {
      queue: Type.String(),
      visible: Type.Integer(),
      inFlight: Type.Integer(),
      delayed: Type.Integer(),
      oldestMs: Type.Union([Type.Number(), Type.Null()], {
        description: "How long the oldest visible message has been so",
      }),
    },
    { title: "Queue" },
  ),
);

export const topicParams = strict({ topic: Type.String({ description: "Words separated by dots" }) });
export const publishBody = strict({
  body: json("Any JSON"),
  dedupKey: Type.Optional(
    dedupKey("As the header idempotency-key: for a day, the same publishes nothing twice"),
  ),
});
export const publishedSchema = Type.Unsafe<Published>(
  strict({
    runs: Type.Integer({ description: "Runs started" }),
    messages: Type.Integer({ description: "Messages sent to queues" }),
    deliveries: Type.Integer({ description: "Deliveries to URLs started" }),
    created: Type.Boolean({ description: "False: it was published before with this key" }),
  }),
);

export const patternParams = strict({
  pattern: Type.String({ description: "Words separated by dots; * is any one, # at the end any number" }),
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
          "Signs the deliveries; at least 24 bytes, whsec_ and base64 or any text. Never given back; left out, the subscription keeps the one it has",
      }),
    ),
  }),
]);
export const subscribedSchema = Type.Unsafe<Subscribed>(
  strict({
    id: Type.String(),
    created: Type.Boolean({ description: "False: there was one of this pattern and target" }),
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
          hasSecret: Type.Boolean({ description: "Deliveries are signed" }),
          createdAt: date,
        },
        { title: "Subscription" },
      ),
    ),
  ),
  cursor: Type.Union([Type.String({ description: "For the next page; null at the end" }), Type.Null()]),
});
