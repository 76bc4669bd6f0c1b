/**
 * Lanes for calls that may meet what somebody has locked. In the database a call waits for a lock no longer than a moment; then
 * it fails as busy, having written nothing. Here it is sent again and again, in a few slow lanes with growing pauses, until
 * it is answered. So callers that must wait delay nobody else, however many they are, and leave connections to the others.
 */

import { Lanes } from "./lanes.js";
import { RetryDelay } from "./retry-delay.js";

const slowLanes = 3;

/** What the errors of a call mean. */
export interface ErrorKinds {
  /** Nothing is known of a call that failed like this: it must not be sent again. */
  isOutage(error: unknown): boolean;
  /** Somebody has locked what the call needs. */
  isBusy(error: unknown): boolean;
}

interface Waiting {
  readonly call: () => Promise<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly retryDelay: RetryDelay;
  tries: number;
  dueAtMs: number;
}

/**
 * Sends calls until they are not busy any more, a few at a time. Of those that are due, the one with the fewest tries goes
 * first: a crowd that waits for one lock does not delay a call that waits for another.
 */
export class SlowLanes {
  readonly #isBusy: ErrorKinds["isBusy"];
  readonly #waiting = new Set<Waiting>();
  #lanes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ isBusy }: Pick<ErrorKinds, "isBusy">) {
    this.#isBusy = isBusy;
  }

  run<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const retryDelay = new RetryDelay();
      this.#waiting.add({
        call,
        resolve: resolve as Waiting["resolve"],
        reject,
        retryDelay,
        tries: 0,
        dueAtMs: 0,
      });
      this.#fill();
    });
  }

  #fill(): void {
    clearTimeout(this.#timer);
    while (this.#lanes < slowLanes && this.#waiting.size > 0) {
      const nowMs = performance.now();
      let next: Waiting | undefined;
      let dueAtMs = Number.POSITIVE_INFINITY;
      for (const one of this.#waiting) {
        dueAtMs = Math.min(dueAtMs, one.dueAtMs);
        if (one.dueAtMs <= nowMs && (next === undefined || one.tries < next.tries)) next = one;
      }
      if (next === undefined) {
        this.#timer = setTimeout(() => this.#fill(), Math.ceil(dueAtMs - nowMs));
        return;
      }
      this.#waiting.delete(next);
      this.#lanes++;
      void this.#send(next);
    }
  }

  async #send(one: Waiting): Promise<void> {
    try {
      one.resolve(await one.call());
    } catch (error) {
      if (!this.#isBusy(error)) one.reject(error);
      else {
        one.tries++;
        one.dueAtMs = performance.now() + one.retryDelay.next();
        this.#waiting.add(one);
      }
    }
    this.#lanes--;
    this.#fill();
  }
}

/** Sends each call once, on at most half of the connections; what is busy goes on in the slow lanes. */
export class LockLanes {
  readonly #isBusy: ErrorKinds["isBusy"];
  readonly #fast: Lanes;
  readonly #slow: SlowLanes;

  constructor({ isBusy, connections }: Pick<ErrorKinds, "isBusy"> & { readonly connections: number }) {
    this.#isBusy = isBusy;
    this.#fast = new Lanes(Math.ceil(connections / 2));
    this.#slow = new SlowLanes({ isBusy });
  }

  async run<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    try {
      return await this.#fast.run(call);
    } catch (error) {
      if (!this.#isBusy(error)) throw error;
    }
    return this.#slow.run(call);
  }
}
