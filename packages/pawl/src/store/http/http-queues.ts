/**
 * Queues and topics through a server: calls of the REST API. Only encodes and decodes. Used by the
 * HTTP transport.
 */

import { fromJson } from "../../values/json.js";
import type { QueueTransport, TopicTransport } from "../client-transport.js";
import {
  type Receipt,
  receiptKey,
  type SentMessage,
  type StoredStats,
  type StoredSubscription,
} from "../queue-store.js";
import type { Message } from "../views.js";
import type { Caller } from "./caller.js";
import type { DatesAsText } from "./dates.js";

/** How much longer than the wait of the server an answer may take. */
const graceMs = 30_000;

const pathOf = (queue: string): string => `/v1/queues/${encodeURIComponent(queue)}`;

export function httpQueues(caller: Caller): QueueTransport {
  return {
    async send(messages) {
      const body = messages.map((message) => ({
        body: fromJson(message.body),
        ...(message.delayMs === null ? {} : { delaySeconds: message.delayMs / 1_000 }),
        ...(message.group === null ? {} : { group: message.group }),
        ...(message.dedupKey === null ? {} : { dedupKey: message.dedupKey }),
      }));
      const path = `${pathOf(messages[0]!.queue)}/messages`;
      // Dedup keys make a second arrival harmless.
      const repeatable = messages.every(({ dedupKey }) => dedupKey !== null);
      const sent = await caller.call<{ messages: SentMessage[] }>("POST", path, { body, repeatable });
      return sent.messages;
    },
    async receive({ queue, visibilityMs, maxReceives, match }, { max, waitMs, signal }) {
      const body = {
        max,
        waitSeconds: waitMs / 1_000,
        visibilitySeconds: visibilityMs / 1_000,
        ...(maxReceives === null ? {} : { maxReceives }),
        ...(match === null ? {} : { match: fromJson(match) }),
      };
      try {
        const answer = await caller.call<{ messages: DatesAsText<Message>[] }>(
          "POST",
          `${pathOf(queue)}/receive`,
          { body, timeoutMs: waitMs + graceMs, ...(signal === undefined ? {} : { signal }) },
        );
        return answer.messages.map((message) => ({ ...message, sentAt: new Date(message.sentAt) }));
      } catch (error) {
        // The server notices the closed connection and keeps the messages.
        if (signal?.aborted === true) return [];
        throw error;
      }
    },
    async ack(receipts) {
      const answer = await caller.call<{ refused: string[] }>("POST", `${pathOf(receipts[0]!.queue)}/ack`, {
        body: { messages: receipts.map(toPair) },
      });
      return acceptedOf(receipts, answer.refused);
    },
    async extend(receipts, visibilityMs) {
      const answer = await caller.call<{ refused: string[] }>(
        "POST",
        `${pathOf(receipts[0]!.queue)}/extend`,
        {
          body: { messages: receipts.map(toPair), visibilitySeconds: visibilityMs / 1_000 },
        },
      );
      return acceptedOf(receipts, answer.refused);
    },
    async stats(queue) {
      if (queue !== null) return [await caller.call<StoredStats>("GET", pathOf(queue))];
      return (await caller.call<{ queues: StoredStats[] }>("GET", "/v1/queues")).queues;
    },
  };
}

interface SubscriptionPage {
  readonly subscriptions: readonly DatesAsText<StoredSubscription>[];
  readonly cursor: string | null;
}

export function httpTopics(caller: Caller): TopicTransport {
  return {
    publish: (topic, body, dedupKey) =>
      caller.call("POST", `/v1/topics/${encodeURIComponent(topic)}/messages`, {
        body: { body: fromJson(body), ...(dedupKey === null ? {} : { dedupKey }) },
        repeatable: dedupKey !== null,
      }),
    // A second call for the same pattern and target finds the same subscription.
    subscribe: (pattern, target, secret) =>
      caller.call("POST", `/v1/topics/${encodeURIComponent(pattern)}/subscriptions`, {
        body: { ...target, ...(secret === null ? {} : { secret }) },
        repeatable: true,
      }),
    async unsubscribe(id) {
      await caller.call("DELETE", `/v1/subscriptions/${encodeURIComponent(id)}`);
      return true;
    },
    async subscriptions(pattern) {
      const path =
        pattern === null ? "/v1/subscriptions" : `/v1/topics/${encodeURIComponent(pattern)}/subscriptions`;
      const all: StoredSubscription[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const answer: SubscriptionPage = await caller.call("GET", path, { query: { cursor } });
        for (const one of answer.subscriptions) all.push({ ...one, createdAt: new Date(one.createdAt) });
        cursor = answer.cursor;
      }
      return all;
    },
  };
}

function toPair({ id, receipt }: Receipt): { id: string; receipt: string } {
  return { id, receipt };
}

/** All but the refused ones. An id with two receipts is refused for at least one of them. */
function acceptedOf(receipts: readonly Receipt[], refused: readonly string[]): ReadonlySet<string> {
  const ids = new Set(refused);
  return new Set(receipts.filter(({ id }) => !ids.has(id)).map(receiptKey));
}
