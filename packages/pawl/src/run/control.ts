/**
 * Ends the code of an execution from outside: the run was cancelled or is past its deadline, its claim is
 * lost, its step took too long, or the worker stops. Every field is written here alone. Made with the execution.
 */

import { DeadlineExceeded, RunCancelled } from "../values/errors.js";
import type { Execution } from "./execution.js";

/**
 * Thrown when an error says nothing about the run: the run was cancelled, the claim lost, or the
 * worker has begun to stop. Nobody handles the error. The worker releases the claim with its
 * attempt unchanged. Caught by `worker/execute.ts`.
 */
export class Interrupted extends Error {}

/** The body of a workflow while it is alive. */
export interface LiveBody {
  /** The execution is aborted. */
  onAbort(): void;
  /** Whether the body only waits for a time or a signal, and none of its code runs. */
  isAtRest(): boolean;
}

export class Control {
  readonly #execution: Execution;
  readonly #onAborted: (execution: Execution) => void;
  #isAborted = false;
  #isInterrupted = false;
  #isStopping = false;
  #isPaused = false;
  #reason: unknown;
  #controller: AbortController | undefined;
  #body: LiveBody | null = null;

  /** `onAborted` is called once, with the execution, when that is aborted. */
  constructor(execution: Execution, onAborted: (execution: Execution) => void) {
    this.#execution = execution;
    this.#onAborted = onAborted;
  }

  /** The claim is gone, or the run was ended from outside: the outcome of the step will be dropped. */
  get isAborted(): boolean {
    return this.#isAborted;
  }

  /** The abort signal of this claim is used up: the next step needs a claim of its own. */
  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  /** The worker stops: an outcome still counts, an error only makes it release the claim. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** The run is paused: running steps finish and count, and no further step begins. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** The run was ended from outside: cancelled, or failed by its deadline. */
  get isCancelled(): boolean {
    return this.#reason instanceof RunCancelled || this.#reason instanceof DeadlineExceeded;
  }

  /** Whether an error of user code says nothing about the run. */
  get isEnding(): boolean {
    return this.#isAborted || this.#isStopping;
  }

  get isAtRest(): boolean {
    return this.#body?.isAtRest() ?? false;
  }

  /** Made when a step first asks for it: most never do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted || this.#isInterrupted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The body of a workflow is alive, or (null) has ended. */
  setBody(body: LiveBody | null): void {
    this.#body = body;
  }

  /** Tells the step to end, while the run goes on with its outcome or error. */
  interrupt(reason: Error): void {
    this.#isInterrupted = true;
    this.#reason ??= reason;
    this.#controller?.abort(reason);
  }

  /** The worker stops. */
  stop(): void {
    this.#isStopping = true;
    this.interrupt(new Error("the worker is stopping"));
  }

  /** The database says that the run is paused. */
  pause(): void {
    this.#isPaused = true;
  }

  abort(reason: Error): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#body?.onAbort();
    this.#onAborted(this.#execution);
  }
}
