/**
 * Notices that the body of a workflow has had a whole turn of the event loop and did nothing in it:
 * only then is it known that the body waits for its steps. Owned by the body.
 */

import { onNextTurn } from "../timing/next-turn.js";

export class IdleCheck {
  readonly #onIdle: () => void;
  /** Counts what the body does. */
  #activity = 0;
  #isChecking = false;

  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  get isChecking(): boolean {
    return this.#isChecking;
  }

  /** The body called a step, or got the outcome of one. */
  onActivity(): void {
    this.#activity++;
  }

  /** Calls `onIdle` after the first turn without activity. */
  check(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const before = this.#activity;
    onNextTurn(() => {
      this.#isChecking = false;
      if (before === this.#activity) this.#onIdle();
      else this.check();
    });
  }
}
