/** What the function of a workflow's step gets: its attempt, and an abort signal, made when it is first asked for. */

import type { StepRun } from "../define/workflow-context.js";
import type { Execution } from "./execution.js";

export class StepSignal implements StepRun {
  readonly attempt: number;
  readonly #execution: Execution;
  #own: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #reason: Error | undefined;

  constructor(execution: Execution, attempt: number) {
    this.#execution = execution;
    this.attempt = attempt;
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#own = new AbortController();
      if (this.#reason !== undefined) this.#own.abort(this.#reason);
      this.#signal = AbortSignal.any([this.#execution.signal, this.#own.signal]);
    }
    return this.#signal;
  }

  /** This step alone is to end. */
  abort(reason: Error): void {
    this.#reason = reason;
    this.#own?.abort(reason);
  }
}
