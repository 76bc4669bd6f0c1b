/**
 * The argument of a workflow step's function: its attempt, and an abort signal that follows the one
 * of the execution while the attempt lasts. The signal is made when the function first asks for it.
 * It does not use `AbortSignal.any`: Node keeps such a signal, and everything its listeners hold,
 * until it is aborted, and most never are.
 */

import type { StepRun } from "../define/workflow-context.js";
import type { Control } from "../run/control.js";

export class AttemptContext implements StepRun {
  readonly attempt: number;
  readonly #control: Control;
  #controller: AbortController | undefined;
  #reason: Error | undefined;
  #isOver = false;
  #follow: (() => void) | undefined;

  constructor(control: Control, attempt: number) {
    this.#control = control;
    this.attempt = attempt;
  }

  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    const controller = new AbortController();
    const { signal } = this.#control;
    this.#controller = controller;
    if (this.#reason !== undefined) controller.abort(this.#reason);
    else if (signal.aborted) controller.abort(signal.reason);
    else if (!this.#isOver) {
      this.#follow = () => controller.abort(signal.reason);
      signal.addEventListener("abort", this.#follow);
    }
    return controller.signal;
  }

  /** Only this step is to end. */
  abort(reason: Error): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
  }

  /** The attempt is over. */
  end(): void {
    this.#isOver = true;
    if (this.#follow !== undefined) this.#control.signal.removeEventListener("abort", this.#follow);
  }
}
