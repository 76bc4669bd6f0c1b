/**
 * Waits between tries during an outage: from 50 ms up to a second, with jitter so that a fleet does not come back
 * in step. Used by every loop of the engine that must never give up.
 */

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

/** Tries until it works or is not wanted any more, whatever the outage. Undefined: not wanted; throws what waiting will not mend. */
export async function persist<T>(
  isUnwanted: () => boolean,
  isOutage: (error: unknown) => boolean,
  attempt: () => Promise<T>,
  onFirstFailure: (error: unknown) => void,
): Promise<T | undefined> {
  const patience = new Patience();
  let hasFailed = false;
  while (!isUnwanted()) {
    try {
      return await attempt();
    } catch (error) {
      if (!isOutage(error)) throw error;
      if (!hasFailed) onFirstFailure(error);
      hasFailed = true;
      await new Promise((resolve) => setTimeout(resolve, patience.next()));
    }
  }
  return undefined;
}
