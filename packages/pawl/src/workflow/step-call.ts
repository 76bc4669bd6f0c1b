/**
 * One call of `ctx.step.*` without an answer: its promise, what it waits for, and its state. Data
 * of the body.
 */

import type { ErrorRecord } from "../values/error-record.js";
import { ChildFailed, StepFailed } from "../values/errors.js";
import type { Json } from "../values/json-types.js";
import type { RetryPolicy } from "../define/retry.js";
import type { JournalChange, StepKind } from "../store/journal.js";
import type { Watched } from "../observe/observer.js";

/** The function of a step, as the body calls it. */
export interface Work {
  readonly fn: (...given: unknown[]) => unknown;
  readonly policy: RetryPolicy;
}

export interface StepCall extends Watched {
  readonly name: string;
  readonly kind: StepKind;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  /**
   * running: its function runs, or its next attempt follows within a second. asking: the database
   * is asked about it. waiting: the database knows what it waits for, and the run need not stay.
   * held: the worker stops or the run is paused, so it does not begin.
   */
  state: "running" | "asking" | "waiting" | "held";
  work: Work | null;
  attempt: number;
  /** The value that its last attempt threw, for listeners and the log. */
  thrown: unknown;
  /** The question for the database while it waits. */
  question: JournalChange;
  /** While it waits: its child, until when, and the last signal that was tried. */
  childId: string | null;
  dueAt: string | null;
  /** The same on the clock of this process. */
  dueAtMs: number | null;
  triedSeq: number;
  /** Stops the timer that ends its wait. */
  stopTimer: (() => void) | undefined;
}

/** Answers a call with its recorded outcome. */
export function settle(call: StepCall, output: Json | null, error: Error | null): void {
  call.stopTimer?.();
  if (error !== null) call.reject(error);
  else call.resolve(call.kind === "sleep" ? undefined : output);
}

/** The error that the body gets for a recorded one. */
export function toError({ name, kind }: StepCall, error: ErrorRecord): Error {
  if (kind !== "invoke") return new StepFailed(name, error);
  const { runId = null, message, code, cause } = error as ErrorRecord & { runId?: string };
  return new ChildFailed(name, runId, message, code === "ChildFailed" ? (cause ?? null) : error);
}

/** Whether it waits for something that arrives in the inbox. */
export const isForSignal = ({ kind }: StepCall): boolean => kind === "wait" || kind === "invoke";

/** Whether both wait for the same event. */
export function isSameEvent(one: JournalChange, other: JournalChange): boolean {
  return one.op === "wait" && other.op === "wait" && one.event === other.event;
}

export function newCall(
  kind: StepKind,
  name: string,
  resolve: (value: unknown) => void,
  reject: (error: Error) => void,
): StepCall {
  return {
    name,
    kind,
    resolve,
    reject,
    state: "asking",
    work: null,
    attempt: 0,
    thrown: null,
    question: { op: "due" },
    childId: null,
    dueAt: null,
    dueAtMs: null,
    triedSeq: 0,
    calledMs: -1,
    tookMs: -1,
    stepSpan: null,
    stopTimer: undefined,
  };
}
