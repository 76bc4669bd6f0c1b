/**
 * Delays between retries: from 50 ms up to a second, doubling, with jitter so that a fleet does not
 * retry in step. Used by every loop that must never give up.
 */

import { concernsCall } from "../store/errors.js";

const shortestMs = 50;
const longestMs = 1_000;

/**
 * The delay after a failure that so many failures in a row preceded. `random` is between 0 and 1.
 */
export function retryDelayMs(failures: number, random: number, atMostMs = longestMs): number {
  return Math.min(shortestMs * 2 ** Math.min(failures, 20), atMostMs) * (0.75 + random / 2);
}

/** Counts the failures in a row of one loop. */
export class RetryDelay {
  #failures = 0;

  /** How long to wait before the next try. */
  next(): number {
    return retryDelayMs(this.#failures++, Math.random());
  }

  /** A try worked. */
  reset(): void {
    this.#failures = 0;
  }
}

/**
 * Repeats a call for a run until it works, or nobody needs its answer. Undefined: nobody needs it.
 * Throws an error that concerns the run and not the call.
 */
export async function retryCall<T>(
  isUnwanted: () => boolean,
  call: () => Promise<T>,
  onFirstFailure: (error: unknown) => void,
): Promise<T | undefined> {
  const delay = new RetryDelay();
  let hasFailed = false;
  while (!isUnwanted()) {
    try {
      return await call();
    } catch (error) {
      if (!concernsCall(error)) throw error;
      if (!hasFailed) onFirstFailure(error);
      hasFailed = true;
      await new Promise((resolve) => setTimeout(resolve, delay.next()));
    }
  }
  return undefined;
}
