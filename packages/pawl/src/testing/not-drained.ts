/**
 * The error of `drain` and `advance` when they give up. It says for each run why it is not at rest.
 */

import type { Why } from "../api/why.js";

/** Runs execute for too long, or execute steps without end. */
export class NotDrained extends Error {
  /** Why each run makes no progress, for at most ten runs. */
  readonly runs: readonly Why[];

  constructor(problem: string, runs: readonly Why[]) {
    const sentences = runs.map(({ text }) => `\n  ${text}`).join("");
    super(`${problem}${sentences === "" ? "" : `:${sentences}`}`);
    this.name = "NotDrained";
    this.runs = runs;
  }
}
