/** Queues and topics through a server: what the calls of the REST API take and answer, translated. Used by the HTTP client. */

import { fromJson } from "../../values/json.js";
import type { Message, QueueRoute } from "../../api/queues.js";
import type { TopicRoute } from "../../api/topics.js";
import {
  type Receipt,
  receiptKey,
  type SentMessage,
  type StoredStats,
  type StoredSubscription,
} from "../queue-store.js";
import type { Caller } from "./caller.js";

/** How much longer than the wait an answer may take. */
const graceMs = 30_000;

const pathOf = (queue: string): string => `/v1/queues/${encodeURIComponent(queue)}`;

export function httpQueues(caller: () => Caller): QueueRoute {
  return {
    async send(messages) {
      const body = messages.map((message) => ({
        body: fromJson(message.body),
        ...(message.delayMs === null ? {} : { delaySeconds: message.delayMs / 1_000 }),
        ...(message.group === null ? {} : { group: message.group }),
        ...(message.dedupKey === null ? {} : { dedupKey: message.dedupKey }),
      }));
      const path = `${pathOf(messages[0]!.queue)}/messages`;
      // With keys, a second arrival finds the messages of the first.
      const repeatable = messages.every(({ dedupKey }) => dedupKey !== null);
      const sent = await caller().call<{ messages: SentMessage[] }>("POST", path, { body, repeatable });
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
        const answer = await caller().call<{ messages: (Omit<Message, "sentAt"> & { sentAt: string })[] }>(
          "POST",
          `${pathOf(queue)}/receive`,
          { body, timeoutMs: waitMs + graceMs, ...(signal === undefined ? {} : { signal }) },
        );
        return answer.messages.map((message) => ({ ...message, sentAt: new Date(message.sentAt) }));
      } catch (error) {
        // The server sees that nobody is there any more, and keeps the messages.
        if (signal?.aborted === true) return [];
        throw error;
      }
    },
    async ack(receipts) {
      const answer = await caller().call<{ refused: string[] }>("POST", `${pathOf(receipts[0]!.queue)}/ack`, {
        body: { messages: receipts.map(toNamed) },
      });
      return without(receipts, answer.refused);
    },
    async extend(receipts, visibilityMs) {
      const answer = await caller().call<{ refused: string[] }>(
        "POST",
        `${pathOf(receipts[0]!.queue)}/extend`,
        {
          body: { messages: receipts.map(toNamed), visibilitySeconds: visibilityMs / 1_000 },
        },
      );
      return without(receipts, answer.refused);
    },
    async stats(queue) {
      if (queue !== null) return [await caller().call<StoredStats>("GET", pathOf(queue))];
      return (await caller().call<{ queues: StoredStats[] }>("GET", "/v1/queues")).queues;
    },
  };
}

interface SubscriptionPage {
  readonly subscriptions: readonly (Omit<StoredSubscription, "createdAt"> & { readonly createdAt: string })[];
  readonly cursor: string | null;
}

export function httpTopics(caller: () => Caller): TopicRoute {
  return {
    publish: (topic, body, dedupKey) =>
      caller().call("POST", `/v1/topics/${encodeURIComponent(topic)}/messages`, {
        body: { body: fromJson(body), ...(dedupKey === null ? {} : { dedupKey }) },
        repeatable: dedupKey !== null,
      }),
    // There is one subscription per pattern and target, however often it is made.
    subscribe: (pattern, target, secret) =>
      caller().call("POST", `/v1/topics/${encodeURIComponent(pattern)}/subscriptions`, {
        body: { ...target, ...(secret === null ? {} : { secret }) },
        repeatable: true,
      }),
    async unsubscribe(id) {
      await caller().call("DELETE", `/v1/subscriptions/${encodeURIComponent(id)}`);
      return true;
    },
    async subscriptions(pattern) {
      const path =
        pattern === null ? "/v1/subscriptions" : `/v1/topics/${encodeURIComponent(pattern)}/subscriptions`;
      const all: StoredSubscription[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const answer: SubscriptionPage = await caller().call("GET", path, { query: { cursor } });
        for (const one of answer.subscriptions) all.push({ ...one, createdAt: new Date(one.createdAt) });
        cursor = answer.cursor;
      }
      return all;
    },
  };
}

function toNamed({ id, receipt }: Receipt): { id: string; receipt: string } {
  return { id, receipt };
}

/** Those that were not refused. An id that was named with two receipts is refused for at least one of them. */
function without(receipts: readonly Receipt[], refused: readonly string[]): ReadonlySet<string> {
  const ids = new Set(refused);
  return new Set(receipts.filter(({ id }) => !ids.has(id)).map(receiptKey));
}
