/** Messages and queues as schemas: the requests and answers of the routes about queues. */

import type { Message, QueueStats, SentMessage } from "pawl";
import { Type } from "typebox";
import { date, json, nullable, strict } from "../http/schemas.js";

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
export const receiptQuery = strict({
  receipt: Type.String({ description: "The receipt that receive returned" }),
});

const outgoing = strict(
  {
    body: json("Any JSON"),
    delaySeconds: Type.Optional(seconds("Nobody receives it before this time has passed", maxDelay)),
    group: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "Messages of one group are received in order, one at a time",
      }),
    ),
    dedupKey: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        description: "While a message with this key is in the queue, a second one is not sent",
      }),
    ),
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
            description: "False: a message with this dedup key is in the queue, and this is its id",
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
    visibilitySeconds: Type.Optional(visibility("How long no other call receives them. Default 30")),
    match: Type.Optional(json("Only messages whose body contains this")),
    maxReceives: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: "After this many receives a message goes to the dead-letter queue. Default 10",
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
          body: json("The body that was sent"),
          receipt: Type.String({ description: "For ack and for changing the visibility" }),
          receives: Type.Integer({ description: "How often it was received, this time included" }),
          group: nullable(Type.String()),
          sentAt: date,
          from: Type.Union([Type.String(), Type.Null()], {
            description: "In a dead-letter queue: the queue that it came from",
          }),
        },
        { title: "ReceivedMessage" },
      ),
    ),
  ),
});

const named = Type.Array(strict({ id: Type.String(), receipt: Type.String() }), { maxItems: 1_000 });
const refused = Type.Array(Type.String(), {
  description: "The ids of messages that are gone or have another receipt",
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
        description: "How long the oldest visible message has been visible",
      }),
    },
    { title: "Queue" },
  ),
);
