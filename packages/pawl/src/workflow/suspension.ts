/**
 * The suspension of a workflow run: what all its open steps wait for. The body makes it when it has
 * had a whole turn and did nothing, no outcome is being recorded, and every open step waits. The
 * SQL function `commit` then locks the run and looks for a wanted signal after `after`. If there is
 * one, the run stays runnable. Pure.
 */

import type { Transition } from "../store/store.js";
import { isForSignal, type StepCall } from "./step-call.js";

export interface Suspension {
  readonly transition: Extract<Transition, { kind: "suspend" }>;
  /**
   * How long until the first wait is due, on the clock of this process; null: no wait has a time.
   */
  readonly dueMs: number | null;
}

const listedSteps = 20;

export function suspensionOf(calls: readonly StepCall[], nowMs: number): Suspension {
  const names = new Set<string>();
  const matches = new Map<string, string | null>();
  for (const { question, childId } of calls) {
    if (childId !== null) names.add(`~${childId}`);
    if (question.op !== "wait") continue;
    const { event, match } = question;
    // Two waits for one event with different matches: any such event wakes the run.
    matches.set(event, names.has(event) && matches.get(event) !== match ? null : match);
    names.add(event);
  }
  const first = calls
    .filter(({ dueAt }) => dueAt !== null)
    .toSorted((one, other) => Date.parse(one.dueAt!) - Date.parse(other.dueAt!))[0];
  const tried = calls.filter(isForSignal).map(({ triedSeq }) => triedSeq);
  return {
    dueMs: first === undefined ? null : Math.max(0, first.dueAtMs! - nowMs),
    transition: {
      kind: "suspend",
      names: [...names],
      matches: Object.fromEntries(
        [...matches].filter((entry): entry is [string, string] => entry[1] !== null),
      ),
      after: tried.reduce((lowest, seq) => Math.min(lowest, seq), tried[0] ?? 0),
      dueAt: first?.dueAt ?? null,
      steps: calls.slice(0, listedSteps).map(({ name }) => name),
    },
  };
}
