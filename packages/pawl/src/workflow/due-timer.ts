/**
 * Waits of a workflow that were over before its run was resumed: they end in the order in which they were due, not in which the body
 * calls them. Owned by the body.
 */

import type { StepCall } from "./step-call.js";
import { onNextTurn } from "../timing/next-turn.js";

export class Overdue {
  readonly #calls: StepCall[] = [];
  readonly #ask: (call: StepCall) => void;

  constructor(ask: (call: StepCall) => void) {
    this.#ask = ask;
  }

  /** Asks about it, with all others of this turn, in their order. */
  add(call: StepCall): void {
    if (this.#calls.push(call) > 1) return;
    onNextTurn(() => {
      const due = this.#calls.splice(0);
      due.sort((one, other) => Date.parse(one.dueAt!) - Date.parse(other.dueAt!));
      for (const each of due) this.#ask(each);
    });
  }
}
