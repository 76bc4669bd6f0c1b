/** Failovers one after the other: each time a new synchronous standby of whoever is the primary takes its place. */

import type { LocalPostgres } from "@pawl/local-postgres";
import { afterAll } from "vitest";
import type { Arena } from "./arena.js";
import type { Network } from "./network.js";
import { makeStandby, type Standby, type StandbyOptions } from "./standby.js";
import { wait } from "./wait.js";

export interface Promotions {
  /** The primary of now. */
  primary(): LocalPostgres;
  /** Makes a standby, lets it follow for so long, ends the primary and puts the standby in its place. */
  failOver(followMs: number): Promise<void>;
}

export function makePromotions(
  arena: Arena,
  network: Network,
  options: Pick<StandbyOptions, "under" | "settings"> = {},
): Promotions {
  let primary = arena.server;
  let standby: Standby | null = null;
  afterAll(() => standby?.stop());
  return {
    primary: () => primary,
    failOver: async (followMs) => {
      const next = await makeStandby(
        { server: primary, sql: arena.sql },
        { isSynchronous: true, ...options },
      );
      await wait(followMs);
      await primary.kill();
      network.leadTo(next.url);
      arena.moveTo(next.url);
      await next.promote();
      primary = next.server;
      const before = standby;
      standby = next;
      await before?.stop();
    },
  };
}
