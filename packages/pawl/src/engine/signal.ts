/**
 * Sends signals for callers of this process, those that come together in one call, and tells the workers of this process
 * which runs they woke. Used by the client.
 */

import type { ClientStore, NewSignal, SignalVerdict } from "../store/store.js";
import { type ErrorKinds, Group } from "./group.js";
import type { Hub } from "./nudge.js";

export class Signaller {
  readonly #group: Group<NewSignal, SignalVerdict>;

  constructor(store: Pick<ClientStore, "signal">, hub: Hub, errors: ErrorKinds) {
    this.#group = new Group({
      ...errors,
      send: async (signals) => {
        const { verdicts, claimable } = await store.signal(signals, { patient: false });
        hub.claimable(claimable);
        return verdicts;
      },
      sizeOf: (signal) => signal.payload.length,
    });
  }

  /** Resolves when the signal is in the inbox for good, or it is known why it is not. */
  send(signal: NewSignal): Promise<SignalVerdict> {
    return this.#group.add(signal);
  }
}
