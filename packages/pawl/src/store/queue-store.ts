/**
 * The database calls behind message queues and topics. Each is one transaction and answers after it
 * is committed. Bodies are JSON text. Expected races are answers, never errors. `postgres/`
 * implements it; clients call it through their transport.
 */

export interface NewMessage {
  readonly queue: string;
  readonly body: string;
  readonly delayMs: number | null;
  readonly group: string | null;
  readonly dedupKey: string | null;
}

export interface SentMessage {
  readonly id: string;
  /**
   * False if the queue has a message with this dedup key: nothing was sent, and `id` is that
   * message.
   */
  readonly created: boolean;
}

export interface StoredMessage {
  readonly id: string;
  readonly body: string;
  /** How often it was received, including this time. */
  readonly receives: number;
  readonly group: string | null;
  readonly sentAt: Date;
  /** In a dead-letter queue: the queue that it came from. */
  readonly from: string | null;
}

/** Which messages to receive. Callers that ask for the same messages share their polls. */
export interface ReceiveFilter {
  readonly queue: string;
  readonly visibilityMs: number;
  /** null: without a limit. */
  readonly maxReceives: number | null;
  /** JSON that the body must contain. */
  readonly match: string | null;
}

export interface ReceiveRequest extends ReceiveFilter {
  /** Random, and new for every call. */
  readonly receipt: string;
  readonly limit: number;
  /** Where the last call found its first message, in microseconds. */
  readonly floor: number | null;
  /** Where the last call stopped among messages that it could not receive. */
  readonly after: readonly [microseconds: number, id: string] | null;
}

export interface Received extends Pick<ReceiveRequest, "floor" | "after"> {
  readonly messages: readonly StoredMessage[];
  /** The limit of messages or bytes ended the call: another call may find more. */
  readonly more: boolean;
  /** When the next message becomes visible, if that is known. */
  readonly dueMs: number | null;
}

/** A message in flight, and the receipt that proves who received it. */
export interface Receipt {
  readonly queue: string;
  readonly id: string;
  readonly receipt: string;
}

export function receiptKey({ id, receipt }: Pick<Receipt, "id" | "receipt">): string {
  return `${id}/${receipt}`;
}

/** The effect of an `ack` or `extend`. */
export interface Settled {
  /**
   * The messages that were deleted or changed (`receiptKey`). The others are gone or have another
   * receipt.
   */
  readonly done: ReadonlySet<string>;
  /** Queues in which a message became visible. */
  readonly queues: readonly string[];
}

export interface StoredStats {
  readonly queue: string;
  readonly visible: number;
  readonly inFlight: number;
  readonly delayed: number;
  readonly oldestMs: number | null;
}

export interface QueueStore {
  /**
   * Sends messages, all or none. The answers have the same order. `patient: false` fails rather
   * than wait long for a dedup key.
   */
  send(messages: readonly NewMessage[], options: { patient: boolean }): Promise<SentMessage[]>;
  receive(request: ReceiveRequest): Promise<Received>;
  /** Deletes messages. */
  ack(receipts: readonly Receipt[]): Promise<Settled>;
  /**
   * Sets a new visibility timeout; 0 returns messages to the queue. `unreceived`: this receive does
   * not count.
   */
  extend(
    receipts: readonly (Receipt & { readonly visibilityMs: number })[],
    options: { unreceived: boolean },
  ): Promise<Settled>;
  /**
   * Makes messages visible whose visibility timeout has passed. `marks` is the answer of the last
   * call.
   */
  expire(limit: number, marks: string | null): Promise<{ queues: readonly string[]; marks: string | null }>;
  /** Of one queue, or (null) of every queue that has messages. */
  queueStats(queue: string | null): Promise<StoredStats[]>;
}

export type StoredTarget =
  | { readonly type: "workflow"; readonly name: string }
  | { readonly type: "queue"; readonly queue: string }
  | { readonly type: "http"; readonly url: string };

export interface StoredSubscription {
  readonly id: string;
  readonly pattern: string;
  readonly target: StoredTarget;
  readonly hasSecret: boolean;
  readonly createdAt: Date;
}

export interface Publication {
  /** How many runs it started, messages it sent and http deliveries it started. */
  readonly runs: number;
  readonly messages: number;
  readonly deliveries: number;
  /** False if the topic already had a publication with this dedup key. */
  readonly created: boolean;
  /** The queues that got messages. */
  readonly queues: readonly string[];
}

export interface TopicStore {
  publish(topic: string, body: string, dedupKey: string | null): Promise<Publication>;
  subscribe(
    pattern: string,
    target: StoredTarget,
    secret: string | null,
  ): Promise<{ id: string; created: boolean }>;
  unsubscribe(id: string, pattern: string | null): Promise<boolean>;
  subscriptions(page: {
    readonly pattern: string | null;
    readonly after: string;
    readonly limit: number;
  }): Promise<StoredSubscription[]>;
  /** The target and secret of a subscription; null if it was deleted. Only for deliveries. */
  subscriptionTarget(id: string): Promise<{ target: StoredTarget; secret: string | null } | null>;
}
