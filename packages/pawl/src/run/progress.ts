/**
 * How far a claimed run is: its step and attempt, its inbox, and the transitions that this claim
 * has committed. `commit.ts` writes it after each committed transition; nobody else does, but for
 * the first step of a machine.
 */

import type { ClaimedRun, Transition } from "../store/store.js";
import { Inbox } from "./inbox.js";
import type { RunClaim } from "./execution.js";

export class Progress {
  readonly inbox: Inbox;
  #step: string | null;
  #attempt: number;
  #turn = 0;
  #isSettled = false;
  #successor: RunClaim | null = null;

  constructor(run: ClaimedRun) {
    this.inbox = new Inbox(run);
    this.#step = run.step;
    this.#attempt = run.attempt;
  }

  /** Null for jobs and workflows, and for a machine that has not begun. */
  get step(): string | null {
    return this.#step;
  }

  get attempt(): number {
    return this.#attempt;
  }

  /** Committed transitions of this claim. */
  get turn(): number {
    return this.#turn;
  }

  /** An outcome has ended the claim. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** The next run in line for the partition key, claimed by the commit that freed the key. */
  get successor(): RunClaim | null {
    return this.#successor;
  }

  /** The step of a machine: this one, if the run is new. */
  beginAt(initial: string): string {
    return (this.#step ??= initial);
  }

  /**
   * The transition is committed. `inboxSeq`: the last signal in the inbox by now, if known.
   * `paused`: the claim has ended, because the run is paused.
   */
  advance(
    transition: Transition,
    { inboxSeq, paused = false }: { readonly inboxSeq: number | null; readonly paused?: boolean },
    successor: RunClaim | null,
  ): void {
    this.#turn++;
    this.#isSettled = transition.kind !== "keep" || paused;
    this.#successor = successor;
    if (transition.kind !== "keep" || paused) return;
    this.#step = transition.step;
    this.#attempt = 0;
    this.inbox.advance(transition.consumed, inboxSeq);
  }
}
