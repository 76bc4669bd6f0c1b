/**
 * `pawl.queues`: message queues for any program, with or without workers. Checks options and
 * encodes bodies before anything is sent. Used by the client; its transport carries the calls.
 */

import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption, PayloadTooLarge } from "../values/errors.js";
import { toJson } from "../values/json.js";
import type { Json } from "../values/json-types.js";
import { checkMessageQueue } from "../values/names.js";
import { checkInteger, checkOptions, checkString, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import type { QueueTransport } from "../store/client-transport.js";
import type { Message } from "../store/views.js";
import { isRunId } from "../values/run-id.js";
import {
  type NewMessage,
  type Receipt,
  receiptKey,
  type SentMessage,
  type StoredStats,
  type ReceiveFilter,
} from "../store/queue-store.js";

export type { SentMessage } from "../store/queue-store.js";
export type { Message } from "../store/views.js";

export interface SendOptions {
  /** The message becomes visible after this time. */
  readonly delay?: Duration | undefined;
  /** Messages of one group are received one at a time, in the order in which they were sent. */
  readonly group?: string | undefined;
  /** While a message with this key is in the queue, another one is not sent. */
  readonly dedupKey?: string | undefined;
}

/** One message of `sendMany`. */
export interface SendItem extends SendOptions {
  readonly body: unknown;
}

export interface ReceiveOptions {
  /** How many messages at most, 1 to 100. Default 10. */
  readonly max?: number | undefined;
  /** How long to wait for the first message, at most 30 seconds. Default 0. */
  readonly wait?: Duration | undefined;
  /**
   * Visibility timeout: how long nobody else receives them, at most 12 hours. Default 30 seconds.
   */
  readonly visibility?: Duration | undefined;
  /** Only messages whose body contains this. */
  readonly match?: unknown;
  /** After this many receives, a message goes to the dead-letter queue. Default 10. */
  readonly maxReceives?: number | undefined;
  /** Aborting it ends the wait; the answer is then empty. */
  readonly signal?: AbortSignal | undefined;
}

/** Identifies a message in flight. You can pass the message itself. */
export type MessageReceipt = Pick<Message, "id" | "receipt">;

export interface Acked {
  /** How many messages this call has deleted. */
  readonly acked: number;
  /**
   * The ids of the others: deleted, or received by somebody else after their visibility timeout.
   */
  readonly refused: readonly string[];
}

export interface Extended {
  /** How many messages this call has changed. */
  readonly extended: number;
  /** The ids of the others: deleted, or no longer in flight with this receipt. */
  readonly refused: readonly string[];
}

/** How many messages a queue has, by state. */
export type QueueStats = StoredStats;

export interface Queues {
  /** Sends one message. Resolves when it is committed. */
  send(queue: string, body: unknown, options?: SendOptions): Promise<SentMessage>;
  /** Sends up to 1,000 messages in one statement, all or none. The answers have the same order. */
  sendMany(queue: string, items: readonly SendItem[]): Promise<readonly SentMessage[]>;
  /**
   * Receives visible messages, oldest first. Nobody else gets them until their visibility timeout.
   */
  receive<Body = Json>(queue: string, options?: ReceiveOptions): Promise<Message<Body>[]>;
  /** Deletes messages that you have processed. Resolves when that is committed. */
  ack(queue: string, messages: MessageReceipt | readonly MessageReceipt[]): Promise<Acked>;
  /**
   * Sets a new visibility timeout, counted from now. 0 returns the messages to the queue at once.
   */
  extend(
    queue: string,
    messages: MessageReceipt | readonly MessageReceipt[],
    visibility: Duration,
  ): Promise<Extended>;
  /** How many messages a queue has. */
  stats(queue: string): Promise<QueueStats>;
  /** The same for every queue that has messages, ordered by name. */
  list(): Promise<QueueStats[]>;
}

const maxItems = 1_000;
const maxBatchBytes = 16 * 1024 * 1024;
const maxWaitMs = 30_000;
const maxVisibilityMs = 12 * 3_600_000;
const defaults = { max: 10, wait: 0, visibility: "30s", maxReceives: 10 };

export function queuesOver(
  transport: () => Promise<QueueTransport>,
  { maxPayloadBytes }: { maxPayloadBytes: number },
): Queues {
  return {
    async send(queue, body, options = {}) {
      const given = checkOptions(options, ["delay", "group", "dedupKey"], "the options of queues.send");
      const message = newMessage(checkMessageQueue(queue), body, given, "body", maxPayloadBytes);
      const [sent] = await (await transport()).send([message]);
      return sent!;
    },
    async sendMany(queue, items) {
      const messages = checkItems(checkMessageQueue(queue), items, maxPayloadBytes);
      return messages.length === 0 ? [] : (await transport()).send(messages);
    },
    async receive<Body>(queue: string, options: ReceiveOptions = {}) {
      const { filter, ...rest } = checkReceive(queue, options, maxPayloadBytes);
      const messages: Message<unknown>[] = await (await transport()).receive(filter, rest);
      // Only the caller knows the type of the bodies.
      return messages as Message<Body>[];
    },
    async ack(queue, messages) {
      const receipts = checkReceipts(queue, messages, "queues.ack");
      const acked = receipts.length === 0 ? new Set<string>() : await (await transport()).ack(receipts);
      const { done, refused } = countSettled(receipts, acked);
      return { acked: done, refused };
    },
    async extend(queue, messages, visibility) {
      const receipts = checkReceipts(queue, messages, "queues.extend");
      const visibilityMs = checkVisibility(visibility, 0);
      const extended =
        receipts.length === 0 ? new Set<string>() : await (await transport()).extend(receipts, visibilityMs);
      const { done, refused } = countSettled(receipts, extended);
      return { extended: done, refused };
    },
    async stats(queue) {
      const checked = checkMessageQueue(queue);
      const [stats] = await (await transport()).stats(checked);
      return stats ?? { queue: checked, visible: 0, inFlight: 0, delayed: 0, oldestMs: null };
    },
    list: async () => (await transport()).stats(null),
  };
}

function checkItems(queue: string, items: unknown, maxBytes: number): NewMessage[] {
  if (!Array.isArray(items) || items.length > maxItems) {
    throw new InvalidOption(
      `queues.sendMany takes an array of at most ${maxItems} messages such as { body, group }, not ` +
        (Array.isArray(items) ? `${items.length} messages` : show(items)),
    );
  }
  // Not with `map`, which skips holes in the array.
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
      `the bodies of the ${messages.length} messages have ${bytes} bytes in total; the limit of one call is ${maxBatchBytes}: send fewer messages at a time`,
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
): { filter: ReceiveFilter; max: number; waitMs: number; signal: AbortSignal | undefined } {
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
    filter: {
      queue: checked,
      visibilityMs: checkVisibility(given.visibility ?? defaults.visibility, 1),
      // A dead-letter queue has no dead-letter queue of its own.
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
      `${what} takes messages from queues.receive, or their { id, receipt }, not ${show(message)}`,
    );
  });
}

/**
 * How many messages were settled, and the ids of the others. A message that was named twice counts
 * once.
 */
function countSettled(
  receipts: readonly Receipt[],
  settled: ReadonlySet<string>,
): { done: number; refused: string[] } {
  const keys = new Set(receipts.map(receiptKey));
  const refused = [...keys].filter((key) => !settled.has(key));
  return { done: keys.size - refused.length, refused: refused.map((key) => key.split("/", 1)[0]!) };
}
