/**
 * `pawl.within(tx)`: starts runs and sends signals in an open transaction of the caller, so they
 * are committed or rolled back together with its own writes. The same checks and answers as the
 * client's, but nothing is durable before the caller commits.
 */

import type { Hub } from "../local/hub.js";
import { startTraced } from "../observe/tracing.js";
import { Sender } from "./send.js";
import type { SendTransport } from "../store/client-transport.js";
import { type OpenTransaction, recognize } from "../store/postgres/callers.js";
import { TransactionStore } from "../store/postgres/transaction-store.js";

/** `start`, `startMany` and `signal` in a transaction of yours. */
export type Within = Pick<Sender, "start" | "startMany" | "signal">;

export interface WithinSettings {
  readonly schema: string;
  readonly maxPayloadBytes: number;
  /** Where to announce the end of the transaction. */
  readonly hub: () => Hub | undefined;
}

/** Transactions whose end will be announced. */
const watched = new WeakSet<object>();

export function within(tx: OpenTransaction, { schema, maxPayloadBytes, hub }: WithinSettings): Within {
  const caller = recognize(tx);
  const store = new TransactionStore(caller, schema);
  // A hint, harmless after a rollback. Without it, workers find the work when they poll.
  const announceEnd = (): void => {
    if (watched.has(tx)) return;
    watched.add(tx);
    caller.afterEnd(() => {
      watched.delete(tx);
      hub()?.hint(null);
    });
  };
  const announced = async <Answer>(call: Promise<Answer>): Promise<Answer> => {
    const answer = await call;
    announceEnd();
    return answer;
  };
  const transport: SendTransport = {
    start: async (run) => (await announced(startTraced([run], (traced) => store.start(traced))))[0]!,
    startMany: (runs) => announced(startTraced(runs, (traced) => store.start(traced))),
    signal: (signal) => announced(store.signal(signal)),
    signalCorrelated: (signal) => announced(store.signalCorrelated(signal)),
  };
  return new Sender(async () => transport, { maxPayloadBytes });
}
