/** The rows of a waterfall: the journal of a workflow, or a job or machine with its children. Pure. */

import type { ErrorRecord, Run, Step } from "../api/types.js";
import { type Look, lookOf, lookOfStep } from "../parts/status.js";
import type { Span } from "./fold.js";

export interface Row extends Span {
  readonly key: string;
  readonly name: string;
  /** Such as "sleep" or "wait". */
  readonly kind: string;
  readonly look: Look;
  /** How often it was tried. */
  readonly attempts: number;
  readonly isPending: boolean;
  readonly error: ErrorRecord | null;
  /** undefined: there is none to show. */
  readonly output: unknown;
  readonly runId: string | null;
  /** When it goes on by itself. */
  readonly dueAt: string | null;
  readonly startedAt: string;
  readonly completedAt: string | null;
  /** How far inside: 0 for the run itself, 1 for its open children. */
  readonly depth: number;
}

/** These rows, with the rows of each open run below its own. */
export function inline(
  rows: readonly Row[],
  inside: ReadonlyMap<string, readonly Row[]>,
  opened: readonly string[],
  depth = 0,
): Row[] {
  return rows.flatMap((row) => {
    const own = depth === 0 ? row : { ...row, key: `${depth} ${row.key}`, depth };
    if (row.runId === null || !opened.includes(row.runId)) return [own];
    const others = opened.filter((one) => one !== row.runId);
    return [own, ...inline(inside.get(row.runId) ?? [], inside, others, depth + 1)];
  });
}

export function rowsOfSteps(steps: readonly Step[], run: Run, nowMs: number): Row[] {
  const endMs = run.completedAt === null ? nowMs : Date.parse(run.completedAt);
  return steps.map((step, index) => ({
    key: `${run.runId} ${index}`,
    depth: 0,
    name: step.name,
    kind: step.kind,
    look: run.status !== "running" && step.status === "pending" ? "cancelled" : lookOfStep(step),
    attempts: step.attempt + 1,
    isPending: step.status === "pending",
    error: step.error,
    output: step.status === "completed" && step.output !== null ? step.output : undefined,
    runId: step.childId,
    dueAt: step.status === "pending" ? step.dueAt : null,
    startedAt: step.startedAt,
    completedAt: step.completedAt,
    fromMs: Date.parse(step.startedAt),
    toMs: step.completedAt === null ? endMs : Date.parse(step.completedAt),
    isIdle: step.kind === "sleep" || step.kind === "wait" || step.kind === "invoke" || step.dueAt !== null,
  }));
}

export function rowsOfRun(run: Run, children: readonly Run[], nowMs: number): Row[] {
  const isWaiting = run.phase === "awaiting_signal" || run.phase === "awaiting_children";
  const at =
    run.kind === "machine" && run.status === "running" ? `at ${run.step ?? ""}` : (run.kind ?? "run");
  const own = rowOf(run, run.name, at, nowMs);
  return [
    // Its error and its output have panels of their own.
    { ...own, runId: null, output: undefined, error: null, isIdle: isWaiting },
    ...children.map((child) => rowOf(child, child.name, "child", nowMs)).toReversed(),
  ];
}

function rowOf(run: Run, name: string, kind: string, nowMs: number): Row {
  return {
    key: run.runId,
    depth: 0,
    name,
    kind,
    look: lookOf(run),
    attempts: run.attempt + 1,
    isPending: run.status === "running",
    error: run.error,
    output: run.output ?? undefined,
    runId: run.runId,
    dueAt: run.status === "running" ? run.eligibleAt : null,
    startedAt: run.startedAt,
    completedAt: run.completedAt,
    fromMs: Date.parse(run.startedAt),
    toMs: run.completedAt === null ? nowMs : Date.parse(run.completedAt),
    isIdle: false,
  };
}
