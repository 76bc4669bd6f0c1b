/**
 * What a worker tells of its executions, as events and as spans: one place for both, so that the engine says once what happens. Without
 * listeners and without a provider of traces it makes nothing. Called by the worker, the executor, `commit.ts` and the bodies of workflows.
 */

import { performance } from "node:perf_hooks";
import { fromJson } from "../values/json.js";
import type { StepKind } from "../store/journal.js";
import type { Emitter, EventMap } from "./events.js";
import { type OpenSpan, openRunSpan } from "./tracing.js";

const unknown = -1;

/** Which attempt at which step. */
export interface Attempt {
  readonly name: string;
  readonly kind: StepKind;
  /** Counted from 0. */
  readonly attempt: number;
}

/** What has become of it, once that is committed. */
export type StepEnd = "step.completed" | "step.failed" | "step.retried";

/** What is known of an attempt at a step while somebody looks. Kept by who carries it out: nothing is made for it that lives on. */
export interface Watched {
  /** When its code was called; -1: nobody looks, or its end is told. */
  calledMs: number;
  /** How long its code took; -1: it has not returned. */
  tookMs: number;
  stepSpan: OpenSpan | null;
}

/** A run while a worker executes it, as far as it is told of. */
export interface Observed extends Watched {
  readonly runId: string;
  readonly definition: { readonly name: string; readonly version: number };
  readonly queue: string;
  readonly attempt: number;
  readonly startedMs: number;
  /** The trace context that the run was started with. */
  readonly trace: string | null;
  /** The span of this stretch of execution. */
  span: OpenSpan | null;
  /** What its end, if it came to that, has made of it. */
  status: "running" | "completed" | "failed";
  /** The code of the error that it ended with. */
  failure: string | null;
}

export class Observer {
  readonly #events: Emitter;

  constructor(events: Emitter) {
    this.#events = events;
  }

  /** A claimed run is about to be executed. */
  begin(execution: Observed): void {
    const { runId, definition, queue, attempt } = execution;
    execution.span = openRunSpan(execution);
    if (!this.#events.hears("run.claimed")) return;
    const { name, version } = definition;
    this.#events.emit("run.claimed", { runId, name, version, queue, attempt });
  }

  /** Its claim has ended, one way or the other. */
  end(execution: Observed): void {
    this.stepDropped(execution);
    execution.span?.end({ status: execution.status, error: execution.failure });
    execution.span = null;
    if (!this.#events.hears("run.released")) return;
    const { runId, definition, queue } = execution;
    const { name, version } = definition;
    this.#events.emit("run.released", { runId, name, version, queue });
  }

  /** The code of a step is about to be called. */
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

  /** It has returned: its time ends here, and not when its outcome is committed. */
  stepReturned(watched: Watched): void {
    if (watched.calledMs === unknown || watched.tookMs !== unknown) return;
    watched.tookMs = performance.now() - watched.calledMs;
  }

  /** Its outcome is committed. The first that is said of the end of an attempt counts. */
  stepEnded(execution: Observed, watched: Watched, at: Attempt, event: StepEnd, delayMs = 0): void {
    if (watched.calledMs === unknown) return;
    this.stepReturned(watched);
    endStep(watched, errorOf[event]);
    if (!this.#events.hears(event)) return;
    const { runId, definition } = execution;
    const { name: step, kind, attempt } = at;
    const { name, version } = definition;
    const durationMs = watched.tookMs;
    if (event === "step.retried") {
      this.#events.emit(event, { runId, name, version, step, kind, attempt, durationMs, delayMs });
    } else {
      this.#events.emit(event, { runId, name, version, step, kind, attempt, durationMs });
    }
  }

  /** Nothing of it is recorded, as far as is known; without effect if its end is told. */
  stepDropped(watched: Watched): void {
    if (watched.calledMs !== unknown) endStep(watched, "dropped");
  }

  /** A sleep, an event or an invoked run is over. */
  waited(execution: Observed, step: string, kind: StepKind, isFailed: boolean): void {
    const name = isFailed ? "step.failed" : "step.completed";
    if (this.#events.hears(name)) {
      this.#events.emit(name, { ...stepOf(execution, { name: step, kind, attempt: 0 }), durationMs: null });
    }
    execution.span?.step(step, kind, 0).end({ error: isFailed ? "StepFailed" : null });
  }

  /** A run has ended: durably. `error` is what is recorded of it. */
  ended(execution: Observed, error: string | null): void {
    if (execution.span === null && !this.#events.hears("run.completed")) return;
    const { runId, definition, startedMs } = execution;
    const status = error === null ? "completed" : "failed";
    const { name } = definition;
    const code = error === null ? null : codeOf(error);
    execution.status = status;
    execution.failure = code;
    const durationMs = Math.max(Date.now() - startedMs, 0);
    this.#events.emit("run.completed", { runId, name, status, code, durationMs });
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

  /** What was done is not recorded: the claim is lost. */
  stale({ runId, definition }: Observed): void {
    if (!this.#events.hears("commit.stale")) return;
    this.#events.emit("commit.stale", { runId, name: definition.name, version: definition.version });
  }

  uniqueLost(runId: string, name: string, version: number): void {
    this.#events.emit("run.unique_lost", { runId, name, version });
  }
}

/** What its span says of the end of an attempt. */
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

/** The code, or else the name, of a recorded error. */
function codeOf(error: string): string {
  const { code, name } = fromJson(error) as { code?: string | null; name?: string };
  return code ?? name ?? "Error";
}
