/**
 * What the function of a workflow's step gets: its attempt, and an abort signal, made when it is first asked for, that follows the
 * one of the execution while the attempt lasts. Not by `AbortSignal.any`: Node keeps such a signal, and all that its listeners hold, until it
 * is aborted, and most never are.
 */

import type { StepRun } from "../define/workflow-context.js";
import type { Execution } from "./execution.js";

export class StepSignal implements StepRun {
  readonly attempt: number;
  readonly #execution: Execution;
  #controller: AbortController | undefined;
  #reason: Error | undefined;
  #isOver = false;
  #follow: (() => void) | undefined;

  constructor(execution: Execution, attempt: number) {
    this.#execution = execution;
    this.attempt = attempt;
  }

  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    const controller = new AbortController();
    const { signal } = this.#execution;
    this.#controller = controller;
    if (this.#reason !== undefined) controller.abort(this.#reason);
    else if (signal.aborted) controller.abort(signal.reason);
    else if (!this.#isOver) {
      this.#follow = () => controller.abort(signal.reason);
      signal.addEventListener("abort", this.#follow);
    }
    return controller.signal;
  }

  /** This step alone is to end. */
  abort(reason: Error): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
  }

  /** The attempt is over. */
  end(): void {
    this.#isOver = true;
    if (this.#follow !== undefined) this.#execution.signal.removeEventListener("abort", this.#follow);
  }
}
