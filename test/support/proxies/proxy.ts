/** A TCP proxy before a test database that can be cut, to see how clients and workers live through an outage. */

import { afterAll } from "vitest";
import { relayTo } from "./relay.js";

export interface Proxy {
  readonly url: string;
  /** Ends all connections and refuses new ones. */
  cut(): void;
  restore(): void;
}

export async function proxyTo(target: string): Promise<Proxy> {
  let isCut = false;
  const relay = await relayTo(target, ({ client, database, end }) => {
    if (isCut) end();
    else client.pipe(database).pipe(client);
  });
  afterAll(relay.close);
  return {
    url: relay.url,
    cut: () => {
      isCut = true;
      relay.reset();
    },
    restore: () => {
      isCut = false;
    },
  };
}
