/**
 * Waits of a workflow whose time had passed before its run was resumed. They end in the order in
 * which they were due, not in the order in which the body calls them. Owned by the body.
 */

import { onNextTurn } from "../timing/next-turn.js";
import type { StepCall } from "./step-call.js";

export class DueWaits {
  readonly #calls: StepCall[] = [];
  readonly #ask: (call: StepCall) => void;

  constructor(ask: (call: StepCall) => void) {
    this.#ask = ask;
  }

  /**
   * Asks about it in the next turn, together with the others of this turn, in the order of due
   * times.
   */
  add(call: StepCall): void {
    if (this.#calls.push(call) > 1) return;
    onNextTurn(() => {
      const due = this.#calls.splice(0);
      due.sort((one, other) => Date.parse(one.dueAt!) - Date.parse(other.dueAt!));
      for (const each of due) this.#ask(each);
    });
  }
}
