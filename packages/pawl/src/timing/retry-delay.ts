/**
 * Waits between tries during an outage: from 50 ms up to a second, with jitter so that a fleet does not come back
 * in step. Used by every loop of the engine that must never give up.
 */

import { concernsCall } from "../store/refused.js";

const shortestMs = 50;
const longestMs = 1_000;

export class Patience {
  #nextMs = shortestMs;

  /** How long to wait before the next try. */
  next(): number {
    const ms = this.#nextMs;
    this.#nextMs = Math.min(ms * 2, longestMs);
    return ms * (0.75 + Math.random() / 2);
  }

  /** It worked again. */
  reset(): void {
    this.#nextMs = shortestMs;
  }
}

/**
 * Tries a call for a run until it works or is not wanted any more. Undefined: not wanted; throws
 * what says something about the run.
 */
export async function persist<T>(
  isUnwanted: () => boolean,
  call: () => Promise<T>,
  onFirstFailure: (error: unknown) => void,
): Promise<T | undefined> {
  const patience = new Patience();
  let hasFailed = false;
  while (!isUnwanted()) {
    try {
      return await call();
    } catch (error) {
      if (!concernsCall(error)) throw error;
      if (!hasFailed) onFirstFailure(error);
      hasFailed = true;
      await new Promise((resolve) => setTimeout(resolve, patience.next()));
    }
  }
  return undefined;
}
