/**
 * Lanes for calls that may meet a row that somebody has locked. The database waits only a moment
 * for a lock; then the call fails as busy and has written nothing. Here it is repeated in slow
 * lanes, with growing delays, until it is answered. So callers that must wait delay nobody else,
 * however many they are, and leave connections to the others. Used by the batcher, the client and
 * the server.
 */

import { retryDelayMs } from "./retry-delay.js";

const defaultLanes = 3;

/** The meaning of the errors of a call. */
export interface ErrorKinds {
  /** The call may have been executed or not: it must not be sent again. */
  isOutage(error: unknown): boolean;
  /** Somebody has locked a row that the call needs. */
  isBusy(error: unknown): boolean;
}

export interface SlowLanesOptions {
  /** Whether a call that failed like this is repeated. */
  isBusy(error: unknown): boolean;
  /** Calls in flight at once. Default 3. */
  readonly lanes?: number;
  /** The longest delay after this error. Default a second. */
  longestDelayMs?(error: unknown): number;
}

/** A few calls at once; the others wait for their turn, in order. */
export class Lanes {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

interface Waiting {
  /** Sends it. Answers how long to wait until the next try; null: it is answered. */
  readonly attempt: (tries: number) => Promise<number | null>;
  tries: number;
  dueAtMs: number;
}

/**
 * Repeats calls until they are not busy, a few at a time. Of those that are due, the one with the
 * fewest tries goes first: a crowd that waits for one lock does not delay a call that waits for
 * another.
 */
export class SlowLanes {
  readonly #options: SlowLanesOptions;
  readonly #waiting = new Set<Waiting>();
  #free: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SlowLanesOptions) {
    this.#options = options;
    this.#free = options.lanes ?? defaultLanes;
  }

  /** `isRepeat`: the call was busy a moment ago, so the first try waits as well. */
  run<Answer>(call: () => Promise<Answer>, { isRepeat = false } = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const attempt = async (tries: number): Promise<number | null> => {
        try {
          resolve(await call());
        } catch (error) {
          const options = this.#options;
          if (options.isBusy(error)) {
            return retryDelayMs(tries, Math.random(), options.longestDelayMs?.(error));
          }
          reject(error);
        }
        return null;
      };
      const dueAtMs = isRepeat ? performance.now() + retryDelayMs(0, Math.random()) : 0;
      this.#waiting.add({ attempt, tries: isRepeat ? 1 : 0, dueAtMs });
      this.#fill();
    });
  }

  #fill(): void {
    clearTimeout(this.#timer);
    while (this.#free > 0 && this.#waiting.size > 0) {
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
      this.#free--;
      void this.#try(next);
    }
  }

  async #try(one: Waiting): Promise<void> {
    const delayMs = await one.attempt(one.tries);
    if (delayMs !== null) {
      one.tries++;
      one.dueAtMs = performance.now() + delayMs;
      this.#waiting.add(one);
    }
    this.#free++;
    this.#fill();
  }
}

/**
 * Sends each call once, on at most half of the connections. A busy call goes on in the slow lanes.
 */
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
