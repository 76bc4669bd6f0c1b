/** What `crashEverywhere` found: the places at which a worker died, those after which something was different, and a text about it. Pure. */

import { show } from "../values/show.js";

/** A place at which the worker died. */
export interface CrashPoint {
  /** The definition of the run that was being written. */
  readonly definition: string;
  /** The step that had been executed last; null: of a job, or before the first step. */
  readonly after: string | null;
  /** What was being committed: the step, the result of the whole run, or that the run waits. */
  readonly commit: "step" | "result" | "wait";
  /** Whether the worker died before or after the commit. Before it, the step is executed again. */
  readonly side: "before" | "after";
}

/** A place at which a crash made a difference. */
export interface CrashChange extends CrashPoint {
  /** The effects, if they were others than without a crash. */
  readonly effects?: { readonly expected: unknown; readonly found: unknown };
  /** What came out, if it was something else. */
  readonly result?: { readonly expected: RunEnd; readonly found: RunEnd };
}

/** How a run ended: its output or its error; or that it did not, and why. */
export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled" | "open";
  readonly output: unknown;
  readonly error: string | null;
}

export interface CrashReport {
  /** At how many places the worker died, each in an execution of its own. */
  readonly points: number;
  readonly changed: readonly CrashChange[];
  /** The same in words. */
  readonly text: string;
}

const maxShown = 200;

export function makeReport(definition: string, points: number, changed: readonly CrashChange[]): CrashReport {
  return { points, changed, text: describe(definition, points, changed) };
}

function describe(definition: string, points: number, changed: readonly CrashChange[]): string {
  const places = `${points} places at which a worker died`;
  if (changed.length === 0) return `${definition}: none of ${places} made a difference`;
  const lines = changed.flatMap((change) => [
    `  ${describePoint(change)}`,
    ...(change.effects === undefined
      ? []
      : [`    the effects were ${brief(change.effects.found)}, not ${brief(change.effects.expected)}`]),
    ...(change.result === undefined
      ? []
      : [`    the run ${ended(change.result.found)}; without a crash it ${ended(change.result.expected)}`]),
  ]);
  return `${definition}: ${changed.length} of ${places} made a difference:\n${lines.join("\n")}`;
}

/** `after step "mail" of welcome@1, before it was committed: the step was executed again`. */
function describePoint({ definition, after, commit, side }: CrashPoint): string {
  const where = after === null ? `in ${definition}` : `after step "${after}" of ${definition}`;
  const what = { step: "it was", result: "the result was", wait: "its wait was" }[commit];
  const isAgain = side === "before" && (commit === "step" || after === null);
  const again = isAgain ? `: ${after === null ? "the function" : "the step"} was executed again` : "";
  return `${where}, ${side} ${what} committed${again}`;
}

function ended({ status, output, error }: RunEnd): string {
  if (status === "completed") return `gave ${brief(output)}`;
  return `${status === "open" ? "did not end" : `was ${status}`}${error === null ? "" : ` (${error})`}`;
}

const brief = (value: unknown): string => show(value, maxShown);
