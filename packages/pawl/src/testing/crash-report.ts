/**
 * The report of `crashEverywhere`: the crash points, those that changed something, and a text.
 * Pure.
 */

import { type ErrorRecord, errorLines } from "../values/error-record.js";
import { show } from "../values/show.js";

/** A point at which the worker died. */
export interface CrashPoint {
  /** The definition of the run whose write crashed. */
  readonly definition: string;
  /** The last executed step; null for a job, or before the first step. */
  readonly after: string | null;
  /** The kind of commit: a step, the result of the run, or a wait. */
  readonly commit: "step" | "result" | "wait";
  /** Whether the worker died before or after the commit. If before, the step executes again. */
  readonly side: "before" | "after";
}

/** A crash point that changed something. */
export interface CrashChange extends CrashPoint {
  /** The effects, if they differ from those without a crash. */
  readonly effects?: { readonly expected: unknown; readonly found: unknown };
  /** The end of the run, if it differs. */
  readonly result?: { readonly expected: RunEnd; readonly found: RunEnd };
  /** The recorded error of the run, with its stack, if it failed after the crash only. */
  readonly failure?: ErrorRecord;
}

/** How a run ended: its output or its error. `open` if it did not end; `error` says why. */
export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled" | "open";
  readonly output: unknown;
  readonly error: string | null;
}

export interface CrashReport {
  /** The number of crash points, each tried in its own execution. */
  readonly points: number;
  readonly changed: readonly CrashChange[];
  /** The report as text. */
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
    ...(change.failure === undefined ? [] : errorLines(change.failure).map((line) => `    ${line}`)),
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
