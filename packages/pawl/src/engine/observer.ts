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
    if (events.hears("step.started")) events.emit("step.started", stepOf(execution, step, kind, attempt));
    const own = span === null ? null : span.step(step, kind, attempt);
    return new StepObservation(events, execution, step, kind, attempt, own);
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
  readonly #execution: Execution;
  readonly #step: string;
  readonly #kind: StepKind;
  readonly #attempt: number;
  readonly #span: OpenSpan | null;
  readonly #begunMs = performance.now();
  #durationMs = -1;
  #isEnded = false;

  constructor(
    events: Emitter,
    execution: Execution,
    step: string,
    kind: StepKind,
    attempt: number,
    span: OpenSpan | null,
  ) {
    this.#events = events;
    this.#execution = execution;
    this.#step = step;
    this.#kind = kind;
    this.#attempt = attempt;
    this.#span = span;
  }

  /** The trace of what the step starts. */
  get traceparent(): string | null {
    return this.#span?.traceparent ?? null;
  }

  /** Whether its code is to be called by `call`. */
  get isTraced(): boolean {
    return this.#span !== null;
  }

  /** Calls the code of the step. */
  call<T>(fn: () => T): T {
    return this.#span === null ? fn() : this.#span.call(fn);
  }

  /** The code of the step has returned: its time ends here, and not when its outcome is committed. */
  returned(): void {
    if (this.#durationMs < 0) this.#durationMs = performance.now() - this.#begunMs;
  }

  completed(): void {
    this.#tell("step.completed", null, 0);
  }

  failed(): void {
    this.#tell("step.failed", "StepFailed", 0);
  }

  retried(delayMs: number): void {
    this.#tell("step.retried", "retried", delayMs);
  }

  /** Nothing of it is recorded. */
  drop(): void {
    this.#end("dropped");
  }

  #tell(
    event: "step.completed" | "step.failed" | "step.retried",
    error: string | null,
    delayMs: number,
  ): void {
    if (!this.#end(error) || !this.#events.hears(event)) return;
    const { runId, definition } = this.#execution;
    const told = {
      runId,
      name: definition.name,
      version: definition.version,
      step: this.#step,
      kind: this.#kind,
      attempt: this.#attempt,
      durationMs: this.#durationMs,
    };
    if (event === "step.retried") this.#events.emit(event, { ...told, delayMs });
    else this.#events.emit(event, told);
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
