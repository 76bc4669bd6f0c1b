/** Heartbeats through a server. Used in the thread of the heartbeat. */

import type { HeartbeatAnswer, HeartbeatConnection } from "../heartbeats.js";
import type { ServerAddress } from "./address.js";
import { Caller } from "./caller.js";

export function openHttpHeartbeats(address: ServerAddress): HeartbeatConnection {
  const caller = new Caller(address);
  const ending = new AbortController();
  return {
    beat: async (workerId, since, timeoutMs) => {
      const answer = await caller.call<HeartbeatAnswer>("POST", "/v1/workers/heartbeat", {
        body: { workerId, since },
        timeoutMs,
        signal: ending.signal,
        tries: 1,
      });
      // An older server does not send it.
      return { ...answer, schemaProblem: answer.schemaProblem ?? null };
    },
    end: async () => ending.abort(),
  };
}
