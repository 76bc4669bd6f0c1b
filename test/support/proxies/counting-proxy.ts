/**
 * A proxy before a test database that counts the statements that pass: each is one round trip, whichever way the driver sends it
 * (a simple query, or a group that ends with Sync). What connects by its URL shares no nudges with what connects directly, as if
 * it were another process.
 */

import { afterAll } from "vitest";
import { Messages } from "./messages.js";
import { relayTo } from "./relay.js";

export interface CountingProxy {
  readonly url: string;
  /** How many statements have been sent so far, by the function of the schema they call. */
  counts(): Readonly<Record<string, number>>;
}

/** All statements between two looks, and those of each kind, for the message of a failure. */
export function sentSince(proxy: CountingProxy): () => { total: number; kinds: Record<string, number> } {
  const before = proxy.counts();
  return () => {
    const kinds = Object.fromEntries(
      Object.entries(proxy.counts())
        .map(([kind, count]) => [kind, count - (before[kind] ?? 0)] as const)
        .filter(([, count]) => count > 0),
    );
    return { total: Object.values(kinds).reduce((sum, count) => sum + count, 0), kinds };
  };
}

export async function countingProxyTo(target: string): Promise<CountingProxy> {
  const counts: Record<string, number> = {};
  const relay = await relayTo(target, ({ client, database }) => {
    const asked = new Messages({ fromClient: true });
    let text = "";
    client.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of asked.take(chunk)) {
        if (type === "P" || type === "B" || type === "Q") text += bytes.toString("latin1");
        if (type !== "S" && type !== "Q") continue;
        const kind = /"pawl"\.(\w+)\(/.exec(text)?.[1] ?? "other";
        counts[kind] = (counts[kind] ?? 0) + 1;
        text = "";
      }
    });
    client.pipe(database).pipe(client);
  });
  afterAll(relay.close);
  return { url: relay.url, counts: () => ({ ...counts }) };
}
