/**
 * Long polls: calls whose answer waits until there is something to answer. Such a call must end at
 * once when its caller disconnects, and answer at once when the server closes. The signals made
 * here say so. Used by the routes that wait.
 */

import { setMaxListeners } from "node:events";
import type { FastifyReply } from "fastify";
import { type Budget, shareOf } from "./budget.js";

/**
 * Counts this many waits until the call is answered; throws if its caller waits for too many
 * things.
 */
export function countWaits(waits: Budget, reply: FastifyReply, count: number): void {
  const share = waits.take(shareOf(reply.request), count);
  reply.raw.once("close", () => share.end());
}

/**
 * Nobody reads the reason. One for all calls, since making an error costs as much as a small
 * request.
 */
const over = new Error("the call is over");

/** Aborted when the caller disconnects, when it has its answer, and when the server closes. */
export function whenOver(reply: FastifyReply, closing: AbortSignal): AbortSignal {
  const call = new AbortController();
  // One call may wait for a thousand things.
  setMaxListeners(0, call.signal);
  const end = (): void => {
    closing.removeEventListener("abort", end);
    call.abort(over);
  };
  if (closing.aborted) call.abort(over);
  else {
    closing.addEventListener("abort", end);
    // Fires once for every reply, however it ends.
    reply.raw.once("close", end);
  }
  return call.signal;
}

/** Aborted when the caller disconnects before it has its answer. */
export function whenGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

/** Calls `undo` if the answer does not reach the caller. */
export function onLostAnswer(reply: FastifyReply, undo: () => void): void {
  if (reply.raw.closed || reply.raw.destroyed) undo();
  else reply.raw.once("close", () => reply.raw.writableFinished || undo());
}
