/**
 * The part of the boundary (`store.ts`) that queues of messages and topics need: each call is one transaction, bodies cross it as
 * JSON text, and expected races are answers. `postgres/` carries them out.
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
  /** False if a message with this dedup key is in the queue: nothing was sent, the id is its. */
  readonly created: boolean;
}

export interface StoredMessage {
  readonly id: string;
  readonly body: string;
  /** How often it was received, this time included. */
  readonly receives: number;
  readonly group: string | null;
  readonly sentAt: Date;
  /** In a dead-letter queue: the queue that it came from. */
  readonly from: string | null;
}

/** What to receive; those who ask for the same share their looks. */
export interface Wanted {
  readonly queue: string;
  readonly visibilityMs: number;
  /** null: no bound. */
  readonly maxReceives: number | null;
  /** JSON that the body must contain. */
  readonly match: string | null;
}

export interface ReceiveRequest extends Wanted {
  /** Random, made anew for every call. */
  readonly receipt: string;
  readonly limit: number;
  /** Where the last call found its first message, in microseconds. */
  readonly floor: number | null;
  /** Where the last call stopped walking over messages that it could not receive. */
  readonly after: readonly [microseconds: number, id: string] | null;
}

export interface Received extends Pick<ReceiveRequest, "floor" | "after"> {
  readonly messages: readonly StoredMessage[];
  /** Whether the limit of messages or bytes ended it: another call may find more. */
  readonly more: boolean;
  /** When the next message is visible, if that is known. */
  readonly dueMs: number | null;
}

/** A message in flight, as who has received it knows it. */
export interface Receipt {
  readonly queue: string;
  readonly id: string;
  readonly receipt: string;
}

export function receiptKey({ id, receipt }: Pick<Receipt, "id" | "receipt">): string {
  return `${id}/${receipt}`;
}

/** What came of a list of receipts. */
export interface Settled {
  /** Those that were deleted or changed, as `receiptKey` writes them; all others are gone or have another receipt. */
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
  /** Sends messages, all or none, and answers in the same order. `patient: false` fails rather than wait long for a dedup key. */
  send(messages: readonly NewMessage[], options: { patient: boolean }): Promise<SentMessage[]>;
  receive(request: ReceiveRequest): Promise<Received>;
  /** Deletes messages. */
  ack(receipts: readonly Receipt[]): Promise<Settled>;
  /** Sets how long messages in flight stay so; 0 gives them back. `unreceived`: as if they had not been received. */
  extend(
    receipts: readonly (Receipt & { readonly visibilityMs: number })[],
    options: { unreceived: boolean },
  ): Promise<Settled>;
  /** Makes messages visible whose visibility has ended. `marks` is what the last call answered. */
  expire(limit: number, marks: string | null): Promise<{ queues: readonly string[]; marks: string | null }>;
  /** Of one queue, or (null) of all that have messages. */
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
  /** Runs started, messages sent, deliveries started. */
  readonly runs: number;
  readonly messages: number;
  readonly deliveries: number;
  /** False if it was published before, with this dedup key. */
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
  /** Where a delivery goes; null if the subscription was deleted. For the deliverer alone. */
  subscriptionTarget(id: string): Promise<{ target: StoredTarget; secret: string | null } | null>;
}
