/** Heartbeats through a server. Used in the thread of the heartbeat. */

import type { BeatAnswer, Beats } from "../beats.js";
import type { ServerAddress } from "./address.js";
import { Caller } from "./caller.js";

export function openHttpBeats(address: ServerAddress): Beats {
  const caller = new Caller(address);
  const ending = new AbortController();
  return {
    beat: async (workerId, since, patienceMs) => {
      const answer = await caller.call<BeatAnswer>("POST", "/v1/workers/heartbeat", {
        body: { workerId, since },
        timeoutMs: patienceMs,
        signal: ending.signal,
        tries: 1,
      });
      // An older server does not send it.
      return { ...answer, schemaProblem: answer.schemaProblem ?? null };
    },
    end: async () => ending.abort(),
  };
}
