/**
 * `pawl.topics` and `pawl.subscriptions`: who publishes to a topic need not know who wants it. Checks what it is given; the same for every
 * transport, which differ only in the way (`TopicRoute`) that things take.
 */

import { checkDeliverySecret } from "../values/delivery-signature.js";
import { InvalidOption, RunNotFound } from "../values/errors.js";
import { toJson } from "../values/json.js";
import { checkMessageQueue, checkName, checkPattern, checkTopic } from "../values/names.js";
import { checkOneOf, checkOptions, checkString, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import { isRunId } from "./runs.js";
import type { Publication, StoredSubscription, StoredTarget } from "../store/queue-store.js";

export interface PublishOptions {
  /** For a day, publishing with the same key to the same topic does nothing. */
  readonly dedupKey?: string | undefined;
}

/** What came of a publication: how many runs were started, messages sent and http deliveries started. */
export type Published = Omit<Publication, "queues">;

/** Where publications go: a run of a definition, whose input is the body; a message in a queue; a request to a URL. */
export type SubscriptionTarget =
  | { readonly type: "workflow"; readonly name: string }
  | { readonly type: "queue"; readonly queue: string }
  | {
      readonly type: "http";
      readonly url: string;
      /** Signs the deliveries: `whsec_` and base64, or any text, at least 24 bytes. Never given back. */
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
  /** False if there was one of this pattern and target; it has the secret given now, or keeps its own. */
  readonly created: boolean;
}

export interface Topics {
  /** Publishes to every subscription whose pattern matches, in one transaction. Resolves when it is committed. */
  publish(topic: string, body: unknown, options?: PublishOptions): Promise<Published>;
}

export interface Subscriptions {
  /** Subscribes a target to a pattern: `user.*` is any one word more, `user.#` any number of them. */
  create(pattern: string, target: SubscriptionTarget): Promise<Subscribed>;
  /** All subscriptions, by id; or those with exactly this pattern. */
  list(options?: { readonly pattern?: string | undefined }): Promise<Subscription[]>;
  /** Ends a subscription. Throws `RunNotFound` if there is none with this id. */
  delete(id: string): Promise<void>;
}

/** The way to the database. */
export interface TopicRoute {
  publish(topic: string, body: string, dedupKey: string | null): Promise<Published>;
  subscribe(pattern: string, target: StoredTarget, secret: string | null): Promise<Subscribed>;
  unsubscribe(id: string): Promise<boolean>;
  /** All of them. */
  subscriptions(pattern: string | null): Promise<StoredSubscription[]>;
}

const maxUrlBytes = 2_000;

export function topicsOver(
  route: Pick<TopicRoute, "publish">,
  { maxPayloadBytes }: { maxPayloadBytes: number },
): Topics {
  return {
    async publish(topic, body, options = {}) {
      const { dedupKey } = checkOptions(options, ["dedupKey"], "the options of topics.publish");
      return route.publish(
        checkTopic(topic),
        toJson(body, "body", maxPayloadBytes).text,
        dedupKey === undefined ? null : checkString(dedupKey, "dedupKey", { maxBytes: 512 }),
      );
    },
  };
}

export function subscriptionsOver(route: TopicRoute): Subscriptions {
  return {
    create: async (pattern, target) => subscribe((...given) => route.subscribe(...given), pattern, target),
    async list(options = {}) {
      const { pattern } = checkOptions(options, ["pattern"], "the options of subscriptions.list");
      return route.subscriptions(pattern === undefined ? null : checkPattern(pattern));
    },
    async delete(id) {
      if (typeof id !== "string")
        throw new InvalidOption(`the id of a subscription is a string, not ${show(id)}`);
      if (isRunId(id) && (await route.unsubscribe(id))) return;
      throw new RunNotFound(`there is no subscription ${show(id, 60)}`);
    },
  };
}

/** Checks what is to be subscribed, and makes that subscription by `make`. */
export async function subscribe(
  make: TopicRoute["subscribe"],
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

/** Where deliveries go, without anything that would show up in a listing and must not. */
function checkTargetUrl(value: unknown): string {
  const text = checkString(value, "url of the target", { maxBytes: maxUrlBytes });
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new InvalidOption(`url of the target must be an http or https URL, not ${show(text)}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new InvalidOption(
      "url of the target must not contain a user or password: it is listed; sign with `secret`",
    );
  }
  url.hash = "";
  // What it becomes when it is written out may be longer than what was given.
  return checkString(url.href, "url of the target", { maxBytes: maxUrlBytes });
}
