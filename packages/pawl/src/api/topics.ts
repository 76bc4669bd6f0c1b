/**
 * `pawl.topics` and `pawl.subscriptions`: publish to a topic without knowing its subscribers.
 * Checks options and encodes bodies before anything is sent. Used by the client; its transport
 * carries the calls.
 */

import { checkDeliverySecret } from "../values/delivery-signature.js";
import { InvalidOption, RunNotFound } from "../values/errors.js";
import { toJson } from "../values/json.js";
import { checkMessageQueue, checkName, checkPattern, checkTopic } from "../values/names.js";
import { checkOneOf, checkOptions, checkString, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import type { TopicTransport } from "../store/client-transport.js";
import { isRunId } from "../values/run-id.js";
import type { Publication, StoredTarget } from "../store/queue-store.js";

export interface PublishOptions {
  /** For one day, publishing to the same topic with the same key again does nothing. */
  readonly dedupKey?: string | undefined;
}

/**
 * The effect of a publication: how many runs and http deliveries it started, and how many messages
 * it sent.
 */
export type Published = Omit<Publication, "queues">;

/**
 * Where publications go: a new run with the body as its input, a message in a queue, or a request
 * to a URL.
 */
export type SubscriptionTarget =
  | { readonly type: "workflow"; readonly name: string }
  | { readonly type: "queue"; readonly queue: string }
  | {
      readonly type: "http";
      readonly url: string;
      /**
       * Signs the deliveries: `whsec_` and base64, or any text of at least 24 bytes. No call
       * returns it.
       */
      readonly secret?: string | undefined;
    };

export interface Subscription {
  readonly id: string;
  readonly pattern: string;
  readonly target: StoredTarget;
  /** Whether deliveries are signed. */
  readonly hasSecret: boolean;
  readonly createdAt: Date;
}

export interface Subscribed {
  readonly id: string;
  /**
   * False if this pattern and target already had a subscription. It gets the new secret, if there
   * is one.
   */
  readonly created: boolean;
}

export interface Topics {
  /**
   * Publishes to every subscription with a matching pattern, in one transaction. Resolves when it
   * is committed.
   */
  publish(topic: string, body: unknown, options?: PublishOptions): Promise<Published>;
}

export interface Subscriptions {
  /**
   * Subscribes a target to a pattern. In `user.*` the star matches one word, in `user.#` any number
   * of words.
   */
  create(pattern: string, target: SubscriptionTarget): Promise<Subscribed>;
  /** All subscriptions ordered by id, or those with exactly this pattern. */
  list(options?: { readonly pattern?: string | undefined }): Promise<Subscription[]>;
  /** Deletes a subscription. Throws `RunNotFound` if there is none with this id. */
  delete(id: string): Promise<void>;
}

const maxUrlBytes = 2_000;

export function topicsOver(
  transport: () => Promise<TopicTransport>,
  { maxPayloadBytes }: { maxPayloadBytes: number },
): Topics {
  return {
    async publish(topic, body, options = {}) {
      const { dedupKey } = checkOptions(options, ["dedupKey"], "the options of topics.publish");
      const publication = [
        checkTopic(topic),
        toJson(body, "body", maxPayloadBytes).text,
        dedupKey === undefined ? null : checkString(dedupKey, "dedupKey", { maxBytes: 512 }),
      ] as const;
      return (await transport()).publish(...publication);
    },
  };
}

export function subscriptionsOver(transport: () => Promise<TopicTransport>): Subscriptions {
  return {
    create: async (pattern, target) =>
      subscribe(async (...given) => (await transport()).subscribe(...given), pattern, target),
    async list(options = {}) {
      const { pattern } = checkOptions(options, ["pattern"], "the options of subscriptions.list");
      const checked = pattern === undefined ? null : checkPattern(pattern);
      return (await transport()).subscriptions(checked);
    },
    async delete(id) {
      if (typeof id !== "string")
        throw new InvalidOption(`the id of a subscription must be a string, not ${show(id)}`);
      if (isRunId(id) && (await (await transport()).unsubscribe(id))) return;
      throw new RunNotFound(`there is no subscription ${show(id, 60)}`);
    },
  };
}

/** Checks a subscription and creates it with `make`. Also used by the server. */
export async function subscribe(
  make: TopicTransport["subscribe"],
  pattern: string,
  target: SubscriptionTarget,
): Promise<Subscribed> {
  const checked = checkTarget(target);
  return make(checkPattern(pattern), checked.target, checked.secret);
}

function checkTarget(given: unknown): { target: StoredTarget; secret: string | null } {
  if (!isObject(given)) {
    throw new InvalidOption(
      `the target of a subscription must be an object such as { type: "queue", queue: "orders" }, not ${show(given)}`,
    );
  }
  const type = checkOneOf(given["type"], "type of the target", ["workflow", "queue", "http"]);
  switch (type) {
    case "workflow": {
      const { name } = checkOptions(given, ["type", "name"], "a target of type workflow");
      return { target: { type, name: checkName("definition", name) }, secret: null };
    }
    case "queue": {
      const { queue } = checkOptions(given, ["type", "queue"], "a target of type queue");
      return { target: { type, queue: checkMessageQueue(queue) }, secret: null };
    }
    case "http": {
      const { url, secret } = checkOptions(given, ["type", "url", "secret"], "a target of type http");
      return {
        target: { type, url: checkTargetUrl(url) },
        secret: secret === undefined ? null : checkDeliverySecret(secret, "secret of the target"),
      };
    }
  }
}

/** The URL of deliveries. It shows up in listings, so it must not contain a secret. */
function checkTargetUrl(value: unknown): string {
  const text = checkString(value, "url of the target", { maxBytes: maxUrlBytes });
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new InvalidOption(`url of the target must be an http or https URL, not ${show(text)}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new InvalidOption(
      "url of the target must not contain a user or password, because listings show it; sign with `secret`",
    );
  }
  url.hash = "";
  // Escaping may have made it longer.
  return checkString(url.href, "url of the target", { maxBytes: maxUrlBytes });
}
