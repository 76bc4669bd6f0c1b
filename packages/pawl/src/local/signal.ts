/**
 * Sends signals for callers of this process. Signals that happen together share one call. A worker
 * of this process with a free slot gets the run that a single signal wakes, already claimed, so the
 * run waits for no poll. For other runs the workers get a hint. Used by the Postgres transport.
 */

import type {
  ClientStore,
  CorrelatedAnswer,
  CorrelatedSignal,
  NewSignal,
  SignalTarget,
  SignalVerdict,
} from "../store/store.js";
import { newClaimId } from "../values/claim-id.js";
import { Batcher } from "../timing/batch.js";
import type { ErrorKinds } from "../timing/slow-lanes.js";
import type { Hub, Slots } from "./hub.js";
import { signalTraced } from "../observe/tracing.js";

interface Answered {
  readonly verdict: SignalVerdict;
  readonly target: SignalTarget | null;
}

export class Signaller {
  readonly #store: Pick<ClientStore, "signal" | "signalCorrelated">;
  readonly #hub: Hub;
  readonly #group: Batcher<NewSignal, Answered>;

  constructor(store: Pick<ClientStore, "signal" | "signalCorrelated">, hub: Hub, errors: ErrorKinds) {
    this.#store = store;
    this.#hub = hub;
    this.#group = new Batcher({
      ...errors,
      send: (signals) => this.#send(signals, signals.length === 1 ? this.#slots() : null),
      sizeOf: (signal) => signal.payload.length,
    });
  }

  /** Resolves when the signal is committed to the inbox, or refused. */
  async send(signal: NewSignal): Promise<SignalVerdict> {
    const { verdict } = await signalTraced(signal, () => this.#group.add(signal));
    return verdict;
  }

  /** Delivers to all live runs of a correlation key. Fails rather than wait long for a locked run. */
  async sendCorrelated(signal: CorrelatedSignal): Promise<readonly CorrelatedAnswer[]> {
    const { answers, claimable } = await this.#store.signalCorrelated(signal, { patient: false });
    this.#hub.claimable(claimable);
    for (const { runId, name, verdict } of answers) {
      if (verdict !== "delivered") continue;
      this.#hub.delivered(runId);
      this.#hub.emit("signal.delivered", { runId, name, event: signal.name });
    }
    return answers;
  }

  async #send(signals: readonly NewSignal[], slots: Slots | null): Promise<Answered[]> {
    const claimId = newClaimId();
    slots?.claiming.add(claimId);
    try {
      const offer = slots && { workerId: slots.workerId, claimId, queues: slots.queues };
      const { verdicts, targets, claimable, handed } = await this.#store.signal(signals, {
        patient: false,
        offer,
      });
      if (handed !== null) slots?.fill(handed.queue, handed.run, claimId);
      this.#hub.claimable(claimable);
      return signals.map(({ runId, name: event }, index) => {
        const verdict = verdicts[index]!;
        const target = targets[index] ?? null;
        if (verdict === "delivered") {
          this.#hub.delivered(runId);
          if (target !== null) this.#hub.emit("signal.delivered", { runId, name: target.name, event });
        }
        return { verdict, target };
      });
    } finally {
      slots?.close();
      slots?.claiming.delete(claimId);
    }
  }

  /** The free slots of the first worker of this process that has any. */
  #slots(): Slots | null {
    for (const worker of this.#hub.workers) {
      const slots = worker.offer();
      if (slots !== null) return slots;
    }
    return null;
  }
}
