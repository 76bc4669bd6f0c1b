/**
 * The calls of queues and topics to PostgreSQL. This file only encodes and decodes; each SQL
 * function states its guarantees in its header.
 */

import {
  type NewMessage,
  type Publication,
  type QueueStore,
  type Receipt,
  receiptKey,
  type Received,
  type ReceiveRequest,
  type SentMessage,
  type Settled,
  type StoredStats,
  type StoredSubscription,
  type StoredTarget,
  type TopicStore,
} from "../queue-store.js";
import { column } from "./literals.js";
import { PostgresScheduleStore } from "./postgres-schedule-store.js";

interface MessageRow {
  id: string;
  body: string;
  receives: number;
  key: string | null;
  sent_at: string;
  origin: string | null;
  meta: string | null;
}

export class PostgresQueueStore extends PostgresScheduleStore implements QueueStore, TopicStore {
  send(messages: readonly NewMessage[], { patient }: { patient: boolean }): Promise<SentMessage[]> {
    return this.call<SentMessage>("send", [
      column(messages, ({ queue }) => queue),
      column(messages, ({ body }) => body),
      column(messages, ({ delayMs }) => delayMs),
      column(messages, ({ group }) => group),
      column(messages, ({ dedupKey }) => dedupKey),
      patient,
    ]);
  }

  async receive(request: ReceiveRequest): Promise<Received> {
    const rows = await this.call<MessageRow>("receive", [
      request.queue,
      request.receipt,
      request.limit,
      request.visibilityMs,
      request.maxReceives,
      request.match,
      request.floor,
      request.after?.[0],
      request.after?.[1],
    ]);
    const last = rows.pop();
    if (last === undefined || last.meta === null)
      throw new Error("pawl.receive answered without its last row");
    const { due_ms: dueMs, ...meta } = JSON.parse(last.meta) as Omit<Received, "messages" | "dueMs"> & {
      due_ms: number | null;
    };
    const messages = rows.map(({ id, body, receives, key, sent_at: sentAt, origin }) => {
      return { id, body, receives, group: key, sentAt: new Date(sentAt), from: origin };
    });
    return { ...meta, dueMs, messages };
  }

  async ack(receipts: readonly Receipt[]): Promise<Settled> {
    const [row] = await this.call<{ acked: string | null; queues: string }>("ack", [
      ...receiptColumns(receipts),
    ]);
    return toSettled(receipts, row!.acked, row!.queues);
  }

  async extend(
    receipts: readonly (Receipt & { readonly visibilityMs: number })[],
    { unreceived }: { unreceived: boolean },
  ): Promise<Settled> {
    const [row] = await this.call<{ extended: string | null; queues: string }>("extend", [
      ...receiptColumns(receipts),
      column(receipts, ({ visibilityMs }) => visibilityMs),
      unreceived,
    ]);
    return toSettled(receipts, row!.extended, row!.queues);
  }

  async expire(
    limit: number,
    marks: string | null,
  ): Promise<{ queues: readonly string[]; marks: string | null }> {
    const [row] = await this.call<{ queues: string; marks: string }>("expire", [limit, marks]);
    return { queues: JSON.parse(row!.queues) as string[], marks: row!.marks };
  }

  async queueStats(queue: string | null): Promise<StoredStats[]> {
    const rows = await this.callAside<{
      queue: string;
      visible: string;
      in_flight: string;
      delayed: string;
      oldest_ms: number | null;
    }>("queue_stats", [queue]);
    return rows.map((row) => ({
      queue: row.queue,
      visible: Number(row.visible),
      inFlight: Number(row.in_flight),
      delayed: Number(row.delayed),
      oldestMs: row.oldest_ms,
    }));
  }

  async publish(topic: string, body: string, dedupKey: string | null): Promise<Publication> {
    const [row] = await this.call<Omit<Publication, "queues"> & { queues: string }>("publish", [
      topic,
      body,
      dedupKey,
      false, // not patient
    ]);
    return { ...row!, queues: JSON.parse(row!.queues) as string[] };
  }

  async subscribe(
    pattern: string,
    target: StoredTarget,
    secret: string | null,
    owner: string | null = null,
  ): Promise<{ id: string; created: boolean }> {
    const [row] = await this.call<{ id: string; created: boolean }>("subscribe", [
      pattern,
      JSON.stringify(target),
      secret,
      owner,
    ]);
    return row!;
  }

  async unsubscribe(id: string, pattern: string | null): Promise<boolean> {
    const [row] = await this.call<{ unsubscribe: boolean }>("unsubscribe", [id, pattern]);
    return row!.unsubscribe;
  }

  async subscriptions(page: {
    readonly pattern: string | null;
    readonly after: string;
    readonly limit: number;
  }): Promise<StoredSubscription[]> {
    const rows = await this.call<{
      id: string;
      pattern: string;
      target: string;
      has_secret: boolean;
      inserted_at: string;
    }>("list_subscriptions", [page.pattern, page.after, page.limit]);
    return rows.map((row) => ({
      id: row.id,
      pattern: row.pattern,
      target: JSON.parse(row.target) as StoredTarget,
      hasSecret: row.has_secret,
      createdAt: new Date(row.inserted_at),
    }));
  }

  async subscriptionTarget(id: string): Promise<{ target: StoredTarget; secret: string | null } | null> {
    const [row] = await this.call<{ target: string; secret: string | null }>("subscription_target", [id]);
    return row === undefined ? null : { target: JSON.parse(row.target) as StoredTarget, secret: row.secret };
  }
}

function receiptColumns(receipts: readonly Receipt[]): (string | null)[] {
  return [
    column(receipts, ({ queue }) => queue),
    column(receipts, ({ id }) => id),
    column(receipts, ({ receipt }) => receipt),
  ];
}

function toSettled(receipts: readonly Receipt[], done: string | null, queues: string): Settled {
  return {
    done: new Set(done === null ? receipts.map(receiptKey) : (JSON.parse(done) as string[])),
    queues: JSON.parse(queues) as string[],
  };
}
