/**
 * Lanes for calls that may meet what somebody has locked. In the database a call waits for a lock no longer than a moment; then
 * it fails as busy, having written nothing. Here it is sent again and again, in a few slow lanes with growing pauses, until
 * it is answered. So callers that must wait delay nobody else, however many they are, and leave connections to the others.
 */

import { Lanes } from "../store/http/lanes.js";
import { Patience } from "./patience.js";

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
}

/** Sends calls until they are not busy any more, a few at a time. */
export class SlowLanes {
  readonly #isBusy: ErrorKinds["isBusy"];
  readonly #waiting: Waiting[] = [];
  #lanes = 0;

  constructor({ isBusy }: Pick<ErrorKinds, "isBusy">) {
    this.#isBusy = isBusy;
  }

  run<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, resolve: resolve as Waiting["resolve"], reject });
      if (this.#lanes >= slowLanes) return;
      this.#lanes++;
      void this.#crawl();
    });
  }

  async #crawl(): Promise<void> {
    const patience = new Patience();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        next.resolve(await next.call());
        patience.reset();
      } catch (error) {
        if (!this.#isBusy(error)) {
          next.reject(error);
          continue;
        }
        this.#waiting.push(next);
        await new Promise((wake) => setTimeout(wake, patience.next()));
      }
    }
    this.#lanes--;
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
