/**
 * Counts the store calls of a test's workers: how many are in flight, and how many made progress.
 * Written by `crashable-store.ts`, read by `settle.ts`.
 */

export class Activity {
  #inFlight = 0;
  #calls = 0;
  #progress = 0;
  #waiting: (() => void)[] = [];
  #steps = new Map<string, number>();

  /** How many calls have begun so far. */
  get calls(): number {
    return this.#calls;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** How many calls have made progress so far: all but polls that found nothing. */
  get progress(): number {
    return this.#progress;
  }

  /**
   * How many steps each run has executed since the last `countSteps`: outcomes, and entries of
   * journals.
   */
  get steps(): ReadonlyMap<string, number> {
    return this.#steps;
  }

  /** Resets the step counts. */
  countSteps(): void {
    this.#steps = new Map();
  }

  /** Counts one step of this run. */
  step(runId: string): void {
    this.#steps.set(runId, (this.#steps.get(runId) ?? 0) + 1);
  }

  begin(): void {
    this.#calls++;
    this.#inFlight++;
  }

  end(isProgress: boolean): void {
    this.#inFlight--;
    if (isProgress) this.#progress++;
    this.notify();
  }

  /** Wakes everyone who waits in `changed`. */
  notify(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  /** Resolves when a call ends, on `notify`, or after this time. */
  changed(longestMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, longestMs);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
