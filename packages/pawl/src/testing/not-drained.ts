/** What `drain` and `advance` throw when they give up: what keeps each run, in sentences. */

import type { Why } from "../api/why.js";

/** Runs execute for too long, or never come to rest. */
export class NotDrained extends Error {
  /** Why each of the runs makes no progress, at most ten of them. */
  readonly runs: readonly Why[];

  constructor(problem: string, runs: readonly Why[]) {
    const sentences = runs.map(({ text }) => `\n  ${text}`).join("");
    super(`${problem}${sentences === "" ? "" : `:${sentences}`}`);
    this.name = "NotDrained";
    this.runs = runs;
  }
}
