/**
 * The caller as the action log names it: a token and its address, a person at the `pawl` command, or code
 * that uses the library. The server and the command say so with `actingAs`; the Postgres transport
 * reads it when a call begins, and the SQL function writes the line of the log.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Actor } from "../store/client-store.js";

const library: Actor = { who: "local", from: "library" };

const acting = new AsyncLocalStorage<Actor>();

/** The caller of the present call. */
export function currentActor(): Actor {
  return acting.getStore() ?? library;
}

/** Calls `call`. Everything that it does counts as an action of `actor`. */
export function actingAs<Answer>(actor: Actor, call: () => Answer): Answer {
  return acting.run(actor, call);
}
