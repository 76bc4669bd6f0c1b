/** What the workers of a test ask of the database: how much of it is under way, and whether anything comes of it. */

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

  /** How many calls have made a difference so far: all but looks that found nothing. */
  get progress(): number {
    return this.#progress;
  }

  /** How many steps each run has executed since the last `countSteps`: outcomes, and entries of journals. */
  get steps(): ReadonlyMap<string, number> {
    return this.#steps;
  }

  /** Counts steps anew. */
  countSteps(): void {
    this.#steps = new Map();
  }

  /** A run has executed a step. */
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
    this.tell();
  }

  /** Something else has happened that `changed` is to report. */
  tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  /** Resolves when a call has ended, or after this time. */
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
