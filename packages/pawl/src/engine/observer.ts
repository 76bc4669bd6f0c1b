/**
 * What a worker tells of its executions, as events and as spans: one place for both, so that the engine says once what happens. Without
 * listeners and without a provider of traces it makes nothing. Called by the worker, the executor, `commit.ts` and the bodies of workflows.
 */

import { fromJson } from "../define/json.js";
import type { StepKind } from "../store/journal.js";
import type { Emitter, EventMap } from "./events.js";
import type { Execution } from "./execution.js";
import { type OpenSpan, openRunSpan } from "./tracing.js";

export class Observer {
  readonly #events: Emitter;

  constructor(events: Emitter) {
    this.#events = events;
  }

  /** A claimed run is about to be executed. */
  begin(execution: Execution): void {
    const { runId, definition, queue, attempt } = execution;
    execution.span = openRunSpan(execution);
    if (!this.#events.hears("run.claimed")) return;
    const { name, version } = definition;
    this.#events.emit("run.claimed", { runId, name, version, queue, attempt });
  }

  /** Its claim has ended, one way or the other. */
  end(execution: Execution): void {
    execution.observed?.drop();
    execution.observed = null;
    execution.span?.end({ status: execution.status, error: execution.failure });
    execution.span = null;
    if (!this.#events.hears("run.released")) return;
    const { runId, definition, queue } = execution;
    const { name, version } = definition;
    this.#events.emit("run.released", { runId, name, version, queue });
  }

  /** A step begins; null if nobody looks. */
  step(execution: Execution, step: string, kind: StepKind, attempt: number): StepObservation | null {
    const events = this.#events;
    const { span } = execution;
    const isHeard =
      events.hears("step.completed") ||
      events.hears("step.started") ||
      events.hears("step.failed") ||
      events.hears("step.retried");
    if (!isHeard && span === null) return null;
    const of = stepOf(execution, step, kind, attempt);
    if (events.hears("step.started")) events.emit("step.started", of);
    return new StepObservation(events, of, span?.step(step, kind, attempt) ?? null);
  }

  /** A sleep, an event or an invoked run is over. */
  waited(execution: Execution, step: string, kind: StepKind, isFailed: boolean): void {
    const name = isFailed ? "step.failed" : "step.completed";
    if (this.#events.hears(name)) {
      this.#events.emit(name, { ...stepOf(execution, step, kind, 0), durationMs: null });
    }
    execution.span?.step(step, kind, 0).end({ error: isFailed ? "StepFailed" : null });
  }

  /** A run has ended: durably. `error` is what is recorded of it. */
  ended(execution: Execution, error: string | null): void {
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
  stale({ runId, definition }: Execution): void {
    if (!this.#events.hears("commit.stale")) return;
    this.#events.emit("commit.stale", { runId, name: definition.name, version: definition.version });
  }

  uniqueLost(runId: string, name: string, version: number): void {
    this.#events.emit("run.unique_lost", { runId, name, version });
  }
}

/** One attempt at a step, while somebody looks. Ended by one of its last four methods; the first of them counts. */
export class StepObservation {
  readonly #events: Emitter;
  readonly #of: EventMap["step.started"];
  readonly #span: OpenSpan | null;
  readonly #begunMs = performance.now();
  #durationMs: number | null = null;
  #isEnded = false;

  constructor(events: Emitter, of: EventMap["step.started"], span: OpenSpan | null) {
    this.#events = events;
    this.#of = of;
    this.#span = span;
  }

  /** The trace of what the step starts. */
  get traceparent(): string | null {
    return this.#span?.traceparent ?? null;
  }

  /** Calls the code of the step. */
  call<T>(fn: () => T): T {
    return this.#span === null ? fn() : this.#span.call(fn);
  }

  /** The code of the step has returned: its time ends here, and not when its outcome is committed. */
  returned(): void {
    this.#durationMs ??= performance.now() - this.#begunMs;
  }

  completed(): void {
    if (!this.#end(null)) return;
    if (!this.#events.hears("step.completed")) return;
    this.#events.emit("step.completed", { ...this.#of, durationMs: this.#durationMs });
  }

  failed(): void {
    if (!this.#end("StepFailed") || !this.#events.hears("step.failed")) return;
    this.#events.emit("step.failed", { ...this.#of, durationMs: this.#durationMs });
  }

  retried(delayMs: number): void {
    if (!this.#end("retried") || !this.#events.hears("step.retried")) return;
    this.#events.emit("step.retried", { ...this.#of, durationMs: this.#durationMs ?? 0, delayMs });
  }

  /** Nothing of it is recorded. */
  drop(): void {
    this.#end("dropped");
  }

  #end(error: string | null): boolean {
    if (this.#isEnded) return false;
    this.#isEnded = true;
    this.returned();
    this.#span?.end({ error });
    return true;
  }
}

function stepOf(
  { runId, definition }: Execution,
  step: string,
  kind: StepKind,
  attempt: number,
): EventMap["step.started"] {
  return { runId, name: definition.name, version: definition.version, step, kind, attempt };
}

/** The code, or else the name, of a recorded error. */
function codeOf(error: string): string {
  const { code, name } = fromJson(error) as { code?: string | null; name?: string };
  return code ?? name ?? "Error";
}
