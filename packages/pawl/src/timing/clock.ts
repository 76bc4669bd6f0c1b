/**
 * Timers that make somebody ask the database whether something is due. The clock of the database
 * decides; a timer only says when to ask. The clock of a test's database stands still until the
 * test moves it: then no timer fires, and every move makes all callers ask. One per hub.
 */

const longestTimerMs = 2_147_483_647;

export class Clock {
  /** Callbacks that wait for the next move; null: the clock runs. */
  #prompts: Set<() => void> | null = null;

  get isStill(): boolean {
    return this.#prompts !== null;
  }

  /** The clock of the database stands still from now on. */
  stop(): void {
    this.#prompts ??= new Set();
  }

  /** The clock of the database was moved: everybody who waits for a time must ask. */
  moved(): void {
    const prompts = [...(this.#prompts ?? [])];
    this.#prompts?.clear();
    for (const prompt of prompts) prompt();
  }

  /** Calls `prompt` once, when this time may have passed. The returned function cancels it. */
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
