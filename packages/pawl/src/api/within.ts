/**
 * `pawl.within(tx)`: starts and signals that are written by an open transaction of the caller, and so are committed, or
 * rolled back, with whatever else it writes. The same checks and the same answers as those of the client; only that
 * nothing is durable before the caller commits.
 */

import type { Hub } from "../local/hub.js";
import { startTraced } from "../observe/tracing.js";
import { Sender } from "./send.js";
import { type OpenTransaction, recognize } from "../store/postgres/callers.js";
import { TransactionStore } from "../store/postgres/transaction-store.js";

/** `start`, `startMany` and `signal`, in a transaction of the caller. */
export type Within = Pick<Sender, "start" | "startMany" | "signal">;

export interface WithinSettings {
  readonly schema: string;
  readonly maxPayloadBytes: number;
  /** Whom to tell when the transaction has ended. */
  readonly hub: () => Hub | undefined;
}

/** Transactions whose end is being waited for. */
const watched = new WeakSet<object>();

export function within(tx: OpenTransaction, { schema, maxPayloadBytes, hub }: WithinSettings): Within {
  const caller = recognize(tx);
  const store = new TransactionStore(caller, schema);
  // A hint, and harmless after a rollback; where the library does not tell, workers find the work when they poll.
  const tellAfterEnd = (): void => {
    if (watched.has(tx)) return;
    watched.add(tx);
    caller.afterEnd(() => {
      watched.delete(tx);
      hub()?.nudge(null);
    });
  };
  const told = async <Answer>(call: Promise<Answer>): Promise<Answer> => {
    const answer = await call;
    tellAfterEnd();
    return answer;
  };
  return new Sender(
    {
      start: async (run) => (await told(startTraced([run], (traced) => store.start(traced))))[0]!,
      startMany: (runs) => told(startTraced(runs, (traced) => store.start(traced))),
      signal: (signal) => told(store.signal(signal)),
    },
    { maxPayloadBytes },
  );
}
