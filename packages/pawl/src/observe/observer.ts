/**
 * Reports executions as events and as spans, so that the engine reports each fact once. Without
 * listeners and without a trace provider it allocates nothing. Called by the worker, the executor,
 * `commit.ts` and the bodies of workflows.
 */

import { performance } from "node:perf_hooks";
import type { StepKind } from "../store/journal.js";
import type { Emitter, EventMap } from "./events.js";
import { type OpenSpan, openRunSpan } from "./tracing.js";

const unknown = -1;

/** One attempt at a step. */
export interface Attempt {
  readonly name: string;
  readonly kind: StepKind;
  /** Counted from 0. */
  readonly attempt: number;
}

/** Where and why a run failed. */
export type FailedAt = Pick<EventMap["run.failed"], "step" | "attempt" | "code" | "error">;

/** How an attempt ended, after the commit. */
export type StepEnd = "step.completed" | "step.failed" | "step.retried";

/**
 * The measurements of an attempt. The caller embeds these fields, so observing allocates nothing.
 */
export interface Watched {
  /** When its code was called; -1 if nobody observes it, or its end was reported. */
  calledMs: number;
  /** How long its code took; -1 while it runs. */
  tookMs: number;
  stepSpan: OpenSpan | null;
}

/** The fields of an execution that events and spans need. */
export interface Observed extends Watched {
  readonly runId: string;
  readonly definition: { readonly name: string; readonly version: number };
  readonly queue: string;
  readonly attempt: number;
  readonly startedMs: number;
  /** The trace context that the run was started with. */
  readonly trace: string | null;
  /** The span of this execution. */
  span: OpenSpan | null;
  /** The status after this execution. */
  status: "running" | "completed" | "failed";
  /** The code of the error that ended the run. */
  failure: string | null;
}

export class Observer {
  readonly #events: Emitter;

  constructor(events: Emitter) {
    this.#events = events;
  }

  get events(): Emitter {
    return this.#events;
  }

  /** A worker is about to execute a claimed run. */
  begin(execution: Observed): void {
    const { runId, definition, queue, attempt } = execution;
    execution.span = openRunSpan(execution);
    if (!this.#events.hears("run.claimed")) return;
    const { name, version } = definition;
    this.#events.emit("run.claimed", { runId, name, version, queue, attempt });
  }

  /** The claim has ended. */
  end(execution: Observed): void {
    this.stepDropped(execution);
    execution.span?.end({ status: execution.status, error: execution.failure });
    execution.span = null;
    if (!this.#events.hears("run.released")) return;
    const { runId, definition, queue } = execution;
    const { name, version } = definition;
    this.#events.emit("run.released", { runId, name, version, queue });
  }

  /** The worker is about to call the code of a step. */
  stepBegins(execution: Observed, watched: Watched, at: Attempt): void {
    const events = this.#events;
    const { span } = execution;
    const isHeard =
      events.hears("step.completed") ||
      events.hears("step.started") ||
      events.hears("step.failed") ||
      events.hears("step.retried");
    if (!isHeard && span === null) return;
    if (events.hears("step.started")) events.emit("step.started", stepOf(execution, at));
    if (span !== null) watched.stepSpan = span.step(at.name, at.kind, at.attempt);
    watched.tookMs = unknown;
    watched.calledMs = performance.now();
  }

  /** The code of the step returned. Its duration ends here, not at the commit. */
  stepReturned(watched: Watched): void {
    if (watched.calledMs === unknown || watched.tookMs !== unknown) return;
    watched.tookMs = performance.now() - watched.calledMs;
  }

  /**
   * The outcome is committed. Only the first report of the end of an attempt counts. `error` is the
   * value that the step threw.
   */
  stepEnded(
    execution: Observed,
    watched: Watched,
    at: Attempt,
    event: StepEnd,
    { delayMs = 0, error = null }: { readonly delayMs?: number; readonly error?: unknown } = {},
  ): void {
    if (watched.calledMs === unknown) return;
    this.stepReturned(watched);
    endStep(watched, errorOf[event]);
    if (!this.#events.hears(event)) return;
    const { runId, definition } = execution;
    const { name: step, kind, attempt } = at;
    const { name, version } = definition;
    const durationMs = watched.tookMs;
    if (event === "step.retried") {
      this.#events.emit(event, { runId, name, version, step, kind, attempt, durationMs, delayMs, error });
    } else if (event === "step.failed") {
      this.#events.emit(event, { runId, name, version, step, kind, attempt, durationMs, error });
    } else {
      this.#events.emit(event, { runId, name, version, step, kind, attempt, durationMs });
    }
  }

  /**
   * The outcome was not recorded, as far as the worker knows. No effect if the end was reported.
   */
  stepDropped(watched: Watched): void {
    if (watched.calledMs !== unknown) endStep(watched, "dropped");
  }

  /**
   * A sleep, a wait for an event or an invoked run ended. `error`: the one that the body gets.
   */
  waited(execution: Observed, step: string, kind: StepKind, error: Error | null): void {
    const name = error === null ? "step.completed" : "step.failed";
    if (this.#events.hears(name)) {
      const ended = { ...stepOf(execution, { name: step, kind, attempt: 0 }), durationMs: null };
      if (error === null) this.#events.emit("step.completed", ended);
      else this.#events.emit("step.failed", { ...ended, error });
    }
    execution.span?.step(step, kind, 0).end({ error: error === null ? null : "StepFailed" });
  }

  /** The end of the run is committed. Null: it completed. */
  ended(execution: Observed, failed: FailedAt | null): void {
    const events = this.#events;
    if (execution.span === null && !events.hears("run.completed") && !events.hears("run.failed")) return;
    const { runId, definition, startedMs } = execution;
    const { name, version } = definition;
    const code = failed === null ? null : failed.code;
    execution.status = failed === null ? "completed" : "failed";
    execution.failure = code;
    const durationMs = Math.max(Date.now() - startedMs, 0);
    events.emit("run.completed", { runId, name, status: execution.status, code, durationMs });
    if (failed !== null) events.emit("run.failed", { runId, name, version, ...failed, durationMs });
  }

  /** Children were started. */
  started(
    children: readonly { readonly name: string; readonly version: number | null }[],
    parentId: string,
  ): void {
    if (!this.#events.hears("run.started")) return;
    for (const { name, version } of children) {
      this.#events.emit("run.started", { runId: null, name, version, parentId });
    }
  }

  /** The outcome is not recorded, because the worker lost its claim. */
  stale({ runId, definition }: Observed): void {
    if (!this.#events.hears("commit.stale")) return;
    this.#events.emit("commit.stale", { runId, name: definition.name, version: definition.version });
  }

  uniqueLost(runId: string, name: string, version: number): void {
    this.#events.emit("run.unique_lost", { runId, name, version });
  }
}

/** The error of the span of an attempt. */
const errorOf = { "step.completed": null, "step.failed": "StepFailed", "step.retried": "retried" } as const;

function endStep(watched: Watched, error: string | null): void {
  watched.calledMs = unknown;
  watched.stepSpan?.end({ error });
  watched.stepSpan = null;
}

function stepOf(
  { runId, definition }: Observed,
  { name: step, kind, attempt }: Attempt,
): EventMap["step.started"] {
  return { runId, name: definition.name, version: definition.version, step, kind, attempt };
}
