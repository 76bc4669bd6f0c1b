/**
 * `pawl.queues`: queues of messages for programs that are no workers. Checks what it is given before anything is sent, and answers in
 * the words of users. The same for every transport: they differ only in the way (`QueueRoute`) that things take.
 */

import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption, PayloadTooLarge } from "../values/errors.js";
import { toJson } from "../values/json.js";
import type { Json } from "../values/json-types.js";
import { checkMessageQueue } from "../values/names.js";
import { checkInteger, checkOptions, checkString, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import { isRunId } from "./runs.js";
import {
  type NewMessage,
  type Receipt,
  receiptKey,
  type SentMessage,
  type StoredStats,
  type Wanted,
} from "../store/queue-store.js";

export type { SentMessage } from "../store/queue-store.js";

export interface SendOptions {
  /** Not visible before this has passed. */
  readonly delay?: Duration | undefined;
  /** Messages of one group are received in the order in which they were sent, one at a time. */
  readonly group?: string | undefined;
  /** While a message with this key is in the queue, a second one is not sent. */
  readonly dedupKey?: string | undefined;
}

/** What `sendMany` takes per message. */
export interface SendItem extends SendOptions {
  readonly body: unknown;
}

export interface ReceiveOptions {
  /** How many at most, 1 to 100. Default 10. */
  readonly max?: number | undefined;
  /** How long to wait for the first, at most 30 seconds. Default 0. */
  readonly wait?: Duration | undefined;
  /** How long nobody else receives them, up to 12 hours. Default 30 seconds. */
  readonly visibility?: Duration | undefined;
  /** Only messages whose body contains this. */
  readonly match?: unknown;
  /** A message that was received so often goes to the dead-letter queue instead. Default 10. */
  readonly maxReceives?: number | undefined;
  /** Ends the wait: nothing is received any more. */
  readonly signal?: AbortSignal | undefined;
}

export interface Message<Body = Json> {
  readonly id: string;
  readonly body: Body;
  /** Proves to `ack` and `extend` who has it. */
  readonly receipt: string;
  /** How often it was received, this time included. */
  readonly receives: number;
  readonly group: string | null;
  readonly sentAt: Date;
  /** In a dead-letter queue: the queue that it came from. */
  readonly from: string | null;
}

/** What names a message in flight: the message itself will do. */
export type MessageReceipt = Pick<Message, "id" | "receipt">;

export interface Acked {
  /** How many messages this call has deleted. */
  readonly acked: number;
  /** The ids of the others: gone, or received by another since their visibility ended. */
  readonly refused: readonly string[];
}

export interface Extended {
  /** How many messages this call has changed. */
  readonly extended: number;
  /** The ids of the others: gone, or no longer in flight under this receipt. */
  readonly refused: readonly string[];
}

/** The messages of a queue. */
export type QueueStats = StoredStats;

export interface Queues {
  /** Sends one message. Resolves when it is committed. */
  send(queue: string, body: unknown, options?: SendOptions): Promise<SentMessage>;
  /** Sends up to 1,000 messages in one statement, all or none, and answers in the same order. */
  sendMany(queue: string, items: readonly SendItem[]): Promise<readonly SentMessage[]>;
  /** Receives visible messages, oldest first: they are yours until their visibility ends. Empty if there are none. */
  receive<Body = Json>(queue: string, options?: ReceiveOptions): Promise<Message<Body>[]>;
  /** Deletes messages that were dealt with. Resolves when that is committed. */
  ack(queue: string, messages: MessageReceipt | readonly MessageReceipt[]): Promise<Acked>;
  /** Sets how long they stay yours, from now on; 0 gives them back at once. */
  extend(
    queue: string,
    messages: MessageReceipt | readonly MessageReceipt[],
    visibility: Duration,
  ): Promise<Extended>;
  /** How many messages a queue has. */
  stats(queue: string): Promise<QueueStats>;
  /** The same of every queue that has messages, by name. */
  list(): Promise<QueueStats[]>;
}

/** The way to the database. */
export interface QueueRoute {
  send(messages: readonly NewMessage[]): Promise<readonly SentMessage[]>;
  receive(
    wanted: Wanted,
    options: { max: number; waitMs: number; signal: AbortSignal | undefined },
  ): Promise<Message[]>;
  /** Those that were deleted, as `receiptKey` writes them. */
  ack(receipts: readonly Receipt[]): Promise<ReadonlySet<string>>;
  extend(receipts: readonly Receipt[], visibilityMs: number): Promise<ReadonlySet<string>>;
  stats(queue: string | null): Promise<StoredStats[]>;
}

const maxItems = 1_000;
const maxBatchBytes = 16 * 1024 * 1024;
const maxWaitMs = 30_000;
const maxVisibilityMs = 12 * 3_600_000;
const defaults = { max: 10, wait: 0, visibility: "30s", maxReceives: 10 };

export function queuesOver(route: QueueRoute, { maxPayloadBytes }: { maxPayloadBytes: number }): Queues {
  return {
    async send(queue, body, options = {}) {
      const given = checkOptions(options, ["delay", "group", "dedupKey"], "the options of queues.send");
      const message = newMessage(checkMessageQueue(queue), body, given, "body", maxPayloadBytes);
      const [sent] = await route.send([message]);
      return sent!;
    },
    async sendMany(queue, items) {
      const messages = checkItems(checkMessageQueue(queue), items, maxPayloadBytes);
      return messages.length === 0 ? [] : route.send(messages);
    },
    async receive<Body>(queue: string, options: ReceiveOptions = {}) {
      const { wanted, ...rest } = checkReceive(queue, options, maxPayloadBytes);
      // What the bodies are is the caller's knowledge.
      return (await route.receive(wanted, rest)) as Message<Body>[];
    },
    async ack(queue, messages) {
      const receipts = checkReceipts(queue, messages, "queues.ack");
      const acked = receipts.length === 0 ? new Set<string>() : await route.ack(receipts);
      const { done, refused } = sortOut(receipts, acked);
      return { acked: done, refused };
    },
    async extend(queue, messages, visibility) {
      const receipts = checkReceipts(queue, messages, "queues.extend");
      const visibilityMs = checkVisibility(visibility, 0);
      const extended = receipts.length === 0 ? new Set<string>() : await route.extend(receipts, visibilityMs);
      const { done, refused } = sortOut(receipts, extended);
      return { extended: done, refused };
    },
    async stats(queue) {
      const checked = checkMessageQueue(queue);
      const [stats] = await route.stats(checked);
      return stats ?? { queue: checked, visible: 0, inFlight: 0, delayed: 0, oldestMs: null };
    },
    list: () => route.stats(null),
  };
}

function checkItems(queue: string, items: unknown, maxBytes: number): NewMessage[] {
  if (!Array.isArray(items) || items.length > maxItems) {
    throw new InvalidOption(
      `queues.sendMany takes a list of at most ${maxItems} messages such as { body, group }, not ` +
        (Array.isArray(items) ? `${items.length} messages` : show(items)),
    );
  }
  // Not by `map`, which leaves holes in a list as they are.
  const messages = Array.from(items as unknown[], (item, index) => {
    if (!isObject(item) || !("body" in item)) {
      throw new InvalidOption(
        `message ${index} of queues.sendMany must be an object such as { body: … }, not ${show(item)}`,
      );
    }
    const what = `message ${index} of queues.sendMany`;
    const { body, ...options } = checkOptions(item, ["body", "delay", "group", "dedupKey"], what);
    return newMessage(queue, body, options, `items[${index}].body`, maxBytes);
  });
  const bytes = messages.reduce((sum, { body }) => sum + body.length, 0);
  if (bytes > maxBatchBytes) {
    throw new PayloadTooLarge(
      `the bodies of the ${messages.length} messages are ${bytes} bytes long together; the limit is ${maxBatchBytes} in one call: send fewer at a time`,
    );
  }
  return messages;
}

function newMessage(
  queue: string,
  body: unknown,
  { delay, group, dedupKey }: { delay?: unknown; group?: unknown; dedupKey?: unknown },
  what: string,
  maxBytes: number,
): NewMessage {
  return {
    queue,
    body: toJson(body, what, maxBytes).text,
    delayMs: delay === undefined ? null : toMilliseconds(delay, "delay") || null,
    group: group === undefined ? null : checkString(group, "group", { maxBytes: 256 }),
    dedupKey: dedupKey === undefined ? null : checkString(dedupKey, "dedupKey", { maxBytes: 512 }),
  };
}

function checkReceive(
  queue: unknown,
  options: unknown,
  maxBytes: number,
): { wanted: Wanted; max: number; waitMs: number; signal: AbortSignal | undefined } {
  const checked = checkMessageQueue(queue);
  const given = checkOptions(
    options,
    ["max", "wait", "visibility", "match", "maxReceives", "signal"],
    "the options of queues.receive",
  );
  const waitMs = toMilliseconds(given.wait ?? defaults.wait, "wait");
  if (waitMs > maxWaitMs) throw new InvalidOption(`wait must be at most 30 seconds, not ${show(given.wait)}`);
  if (given.signal !== undefined && !(given.signal instanceof AbortSignal)) {
    throw new InvalidOption(`signal must be an AbortSignal, not ${show(given.signal)}`);
  }
  const maxReceives = checkInteger(given.maxReceives ?? defaults.maxReceives, "maxReceives", {
    min: 1,
    max: 1_000_000,
  });
  return {
    wanted: {
      queue: checked,
      visibilityMs: checkVisibility(given.visibility ?? defaults.visibility, 1),
      // What is in a dead-letter queue stays there.
      maxReceives: checked.endsWith("-dead") ? null : maxReceives,
      match: given.match === undefined ? null : toJson(given.match, "match", maxBytes).text,
    },
    max: checkInteger(given.max ?? defaults.max, "max", { min: 1, max: 100 }),
    waitMs,
    signal: given.signal,
  };
}

function checkVisibility(visibility: unknown, least: number): number {
  const ms = toMilliseconds(visibility, "visibility");
  if (ms >= least && ms <= maxVisibilityMs) return ms;
  throw new InvalidOption(
    `visibility must be from ${least} ms to 12 hours, not ${show(visibility)}; longer work is extended with queues.extend`,
  );
}

function checkReceipts(queue: unknown, given: unknown, what: string): Receipt[] {
  const checked = checkMessageQueue(queue);
  const list: unknown[] = Array.isArray(given) ? given : [given];
  if (list.length > maxItems) {
    throw new InvalidOption(`${what} takes at most ${maxItems} messages, not ${list.length}`);
  }
  return list.map((message) => {
    if (isObject(message) && isRunId(message["id"]) && isRunId(message["receipt"])) {
      return { queue: checked, id: message["id"], receipt: message["receipt"] };
    }
    throw new InvalidOption(
      `${what} takes messages that queues.receive gave, or their { id, receipt }, not ${show(message)}`,
    );
  });
}

/** How many messages were settled, and the ids of the others; a message that was named twice counts once. */
function sortOut(
  receipts: readonly Receipt[],
  settled: ReadonlySet<string>,
): { done: number; refused: string[] } {
  const keys = new Set(receipts.map(receiptKey));
  const refused = [...keys].filter((key) => !settled.has(key));
  return { done: keys.size - refused.length, refused: refused.map((key) => key.split("/", 1)[0]!) };
}
