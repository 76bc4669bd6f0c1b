/**
 * Calls that are held back until there is something to tell (long polls). What holds one must let go at once when its caller
 * is gone, and answer at once when the server closes: it is given a signal that says so.
 */

import { setMaxListeners } from "node:events";
import type { FastifyReply } from "fastify";
import { type Budget, shareOf } from "./budget.js";

/** Counts this many things that the call waits for, until it is answered; throws if its caller waits for too many. */
export function countWaits(waits: Budget, reply: FastifyReply, count: number): void {
  const share = waits.take(shareOf(reply.request), count);
  reply.raw.once("close", () => share.end());
}

/** Nobody is told the reason: one for all, since to make one costs as much as a small request. */
const over = new Error("the call is over");

/** Aborted when the caller of this reply is gone, or has its answer, or the server closes. */
export function heldSignal(reply: FastifyReply, closing: AbortSignal): AbortSignal {
  const held = new AbortController();
  // One call may wait for a thousand things.
  setMaxListeners(0, held.signal);
  const letGo = (): void => {
    closing.removeEventListener("abort", letGo);
    held.abort(over);
  };
  if (closing.aborted) held.abort(over);
  else {
    closing.addEventListener("abort", letGo);
    // Comes once for every reply, however it ends.
    reply.raw.once("close", letGo);
  }
  return held.signal;
}

/** Aborted when the caller has gone before it had its answer. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

/** Calls `letGo` if the answer does not reach the caller. */
export function ifLost(reply: FastifyReply, letGo: () => void): void {
  if (reply.raw.closed || reply.raw.destroyed) letGo();
  else reply.raw.once("close", () => reply.raw.writableFinished || letGo());
}
