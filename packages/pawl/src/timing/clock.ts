/**
 * What prompts this process to ask whether something is due. The clock of the database decides what is; here are only the timers
 * that make somebody ask. The clock of a test's database stands still until the test moves it: then no timer prompts, and every
 * move does. One per hub.
 */

const longestTimerMs = 2_147_483_647;

export class Clock {
  /** What waits for the next move; null: the clock runs. */
  #prompts: Set<() => void> | null = null;

  get isStill(): boolean {
    return this.#prompts !== null;
  }

  /** The clock of the database stands still from now on. */
  stop(): void {
    this.#prompts ??= new Set();
  }

  /** The clock of the database was moved: whoever waits for a time is to ask. */
  moved(): void {
    const prompts = [...(this.#prompts ?? [])];
    this.#prompts?.clear();
    for (const prompt of prompts) prompt();
  }

  /** Calls `prompt` once, when this time may have passed; the returned function takes that back. */
  after(delayMs: number, prompt: () => void): () => void {
    const prompts = this.#prompts;
    if (prompts === null) {
      const timer = setTimeout(prompt, Math.min(Math.max(Math.ceil(delayMs), 0), longestTimerMs));
      return () => clearTimeout(timer);
    }
    prompts.add(prompt);
    return () => prompts.delete(prompt);
  }
}
