/** Topics straight to Postgres: publishes, and tells whoever waits in this process for what came of it. Used by the client. */

import type { LockLanes } from "../timing/slow-lanes.js";
import type { Hub } from "../local/hub.js";
import type { StoredSubscription, TopicStore } from "../store/queue-store.js";
import type { TopicRoute } from "./topics.js";

const page = 1_000;

export function postgresTopics(
  opened: () => Promise<{ readonly store: TopicStore; readonly hub: Hub; readonly lanes: LockLanes }>,
): TopicRoute {
  return {
    async publish(topic, body, dedupKey) {
      const { store, hub, lanes } = await opened();
      const { queues, ...published } = await lanes.run(() => store.publish(topic, body, dedupKey));
      for (const queue of new Set(queues)) hub.visible(queue, { isOld: false });
      if (published.created && published.runs + published.deliveries > 0) hub.nudge(null);
      return published;
    },
    async subscribe(pattern, target, secret) {
      const { store, lanes } = await opened();
      return lanes.run(() => store.subscribe(pattern, target, secret));
    },
    async unsubscribe(id) {
      const { store, lanes } = await opened();
      return lanes.run(() => store.unsubscribe(id, null));
    },
    async subscriptions(pattern) {
      const { store } = await opened();
      const all: StoredSubscription[] = [];
      for (let found = page; found === page;) {
        const next = await store.subscriptions({ pattern, after: all.at(-1)?.id ?? "0", limit: page });
        all.push(...next);
        found = next.length;
      }
      return all;
    },
  };
}
