/**
 * OpenTelemetry spans, through the API only: without a registered provider this makes nothing. A
 * run keeps the trace context of its starter (`runs.trace`, a W3C traceparent), so all its spans
 * are in one trace, across processes and days. `workflow.run` is one execution, from claim to
 * suspension or end; waits are the gaps between them. `workflow.step` is one attempt at a step, or
 * the end of a wait. `workflow.signal` belongs to the sender and links to the run. Attributes are
 * names and ids, never values that users pass in. Called by the observer and the clients.
 */

import { createHash } from "node:crypto";
import {
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import type { Status } from "../values/phase.js";
import type { StepKind } from "../store/journal.js";
import type { NewRun, NewSignal, SignalTarget } from "../store/store.js";

/** The tracer of the registered provider; null if there is none. */
function activeTracer(): Tracer | null {
  const provider = trace.getTracerProvider() as ReturnType<typeof trace.getTracerProvider> & {
    getDelegateTracer?(name: string): Tracer | undefined;
  };
  if (provider.getDelegateTracer === undefined) return provider.getTracer("pawl");
  return provider.getDelegateTracer("pawl") ?? null;
}

/** The fields of a run that its spans need. */
export interface TracedRun {
  readonly runId: string;
  readonly definition: { readonly name: string; readonly version: number };
  readonly startedMs: number;
  /** As it is stored. */
  readonly trace: string | null;
}

/** An open span, and the context in which user code runs. */
export class OpenSpan {
  readonly #span: Span;
  readonly #tracer: Tracer;
  readonly #run: TracedRun;
  readonly context: Context;

  constructor(span: Span, parent: Context, tracer: Tracer, run: TracedRun) {
    this.#span = span;
    this.#tracer = tracer;
    this.#run = run;
    this.context = trace.setSpan(parent, span);
  }

  /** The trace context for runs that are started inside this span. */
  get traceparent(): string {
    return writeTraceparent(this.#span.spanContext());
  }

  call<T>(fn: () => T): T {
    return context.with(this.context, fn);
  }

  /** Opens the span of an attempt at a step. */
  step(name: string, kind: StepKind, attempt: number): OpenSpan {
    const span = this.#tracer.startSpan(
      "workflow.step",
      {
        attributes: {
          "workflow.name": this.#run.definition.name,
          run_id: this.#run.runId,
          "step.name": name,
          "step.kind": kind,
          "step.attempt": attempt,
        },
      },
      this.context,
    );
    return new OpenSpan(span, this.context, this.#tracer, this.#run);
  }

  /** Records the code of an error, not its message, which may quote values of users. */
  end({ status, error }: { readonly status?: Status; readonly error?: string | null } = {}): void {
    if (status !== undefined) this.#span.setAttribute("status", status);
    if (error !== undefined && error !== null) {
      this.#span.setStatus({ code: SpanStatusCode.ERROR, message: error });
    }
    this.#span.end();
  }
}

/** Opens the span of an execution; null without a provider. */
export function openRunSpan(run: TracedRun): OpenSpan | null {
  const tracer = activeTracer();
  if (tracer === null) return null;
  const parent = trace.setSpanContext(ROOT_CONTEXT, traceOf(run));
  const attributes = {
    "workflow.name": run.definition.name,
    "workflow.version": run.definition.version,
    run_id: run.runId,
  };
  const span = tracer.startSpan("workflow.run", { kind: SpanKind.CONSUMER, attributes }, parent);
  return new OpenSpan(span, parent, tracer, run);
}

/** Starts runs within the caller's trace, or within a new one if the caller has none. */
export async function startTraced<Answer>(
  runs: readonly NewRun[],
  send: (runs: readonly NewRun[]) => Promise<Answer>,
): Promise<Answer> {
  const tracer = activeTracer();
  const [first] = runs;
  if (tracer === null || first === undefined || runs.every(({ trace: given }) => given !== null))
    return send(runs);
  const active = trace.getSpanContext(context.active());
  if (active !== undefined && trace.isSpanContextValid(active)) return send(withTrace(runs, active));
  const span = tracer.startSpan("workflow.start", {
    kind: SpanKind.PRODUCER,
    attributes: { "workflow.name": first.name },
  });
  try {
    return await send(withTrace(runs, span.spanContext()));
  } finally {
    span.end();
  }
}

function withTrace(runs: readonly NewRun[], spanContext: SpanContext): NewRun[] {
  const traceparent = writeTraceparent(spanContext);
  return runs.map((run) => ({ ...run, trace: run.trace ?? traceparent }));
}

/**
 * Sends a signal. Its span is in the caller's trace with a link to the run, or else in the run's
 * trace.
 */
export async function signalTraced<Answer extends { readonly target: SignalTarget | null }>(
  { runId, name: event }: NewSignal,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const tracer = activeTracer();
  if (tracer === null) return send();
  const caller = context.active();
  const startTime = Date.now();
  const answer = await send();
  const { target } = answer;
  if (target === null) return answer;
  const ofRun = readTraceparent(target.trace);
  const isCalled = trace.getSpanContext(caller) !== undefined;
  const attributes = { "workflow.name": target.name, run_id: runId, event };
  const links = isCalled && ofRun !== null ? [{ context: ofRun }] : [];
  const parent = isCalled || ofRun === null ? caller : trace.setSpanContext(ROOT_CONTEXT, ofRun);
  tracer
    .startSpan("workflow.signal", { kind: SpanKind.PRODUCER, startTime, attributes, links }, parent)
    .end();
  return answer;
}

/**
 * The trace of a run: the stored one, or else one derived from its id, the same in every process.
 */
function traceOf({ trace: stored, runId, startedMs }: TracedRun): SpanContext {
  const read = readTraceparent(stored);
  if (read !== null) return read;
  const hash = createHash("sha256").update(`${runId}/${startedMs}`).digest("hex");
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48), traceFlags: 1, isRemote: true };
}

function writeTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** The text if it is a valid traceparent, else null. */
export function checkTraceparent(text: unknown): string | null {
  return typeof text === "string" && readTraceparent(text) !== null ? text : null;
}

function readTraceparent(text: string | null): SpanContext | null {
  const found = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? "");
  if (found === null) return null;
  const [, traceId = "", spanId = "", flags = ""] = found;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
