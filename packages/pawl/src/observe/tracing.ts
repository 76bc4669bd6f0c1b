/**
 * OpenTelemetry, by its API alone: without a registered provider nothing is made here. A run keeps the trace context of who started it
 * (`runs.trace`, a W3C traceparent), so all its spans, in whatever process and however many days apart, are of one trace. `workflow.run` is one
 * stretch of execution, from claim to suspension or end: waits are the gaps between them. `workflow.step` is one attempt at a step, or the moment at
 * which a wait ended. `workflow.signal` belongs to who sends, with a link to the run. Attributes are names and ids; nothing that
 * users pass in ever becomes one.
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

/** The tracer of the registered provider; null: there is none, and whatever would be made of it is not. */
function activeTracer(): Tracer | null {
  const provider = trace.getTracerProvider() as ReturnType<typeof trace.getTracerProvider> & {
    getDelegateTracer?(name: string): Tracer | undefined;
  };
  if (provider.getDelegateTracer === undefined) return provider.getTracer("pawl");
  return provider.getDelegateTracer("pawl") ?? null;
}

/** A run as its spans see it. */
export interface TracedRun {
  readonly runId: string;
  readonly definition: { readonly name: string; readonly version: number };
  readonly startedMs: number;
  /** As it is stored. */
  readonly trace: string | null;
}

/** A span that is open, and the context in which user code runs meanwhile. */
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

  /** What a run stores that is started by it. */
  get traceparent(): string {
    return writeTraceparent(this.#span.spanContext());
  }

  call<T>(fn: () => T): T {
    return context.with(this.context, fn);
  }

  /** One attempt at a step of it. */
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

  /** Errors are named by their code: their messages may quote what users have passed in. */
  end({ status, error }: { readonly status?: Status; readonly error?: string | null } = {}): void {
    if (status !== undefined) this.#span.setAttribute("status", status);
    if (error !== undefined && error !== null) {
      this.#span.setStatus({ code: SpanStatusCode.ERROR, message: error });
    }
    this.#span.end();
  }
}

/** Begins a stretch of execution of a run; null without a provider. */
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

/** Starts runs as part of the caller's trace, or, if it has none, of a new one that begins here. */
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

/** Sends a signal; its span is one of the caller's trace, with a link to the run, or else one of the run's trace. */
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

/** The trace of a run: the stored one, or else one that all processes make of it alike. */
function traceOf({ trace: stored, runId, startedMs }: TracedRun): SpanContext {
  const read = readTraceparent(stored);
  if (read !== null) return read;
  const hash = createHash("sha256").update(`${runId}/${startedMs}`).digest("hex");
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48), traceFlags: 1, isRemote: true };
}

function writeTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** The text, if it is a trace context; else null. */
export function checkTraceparent(text: unknown): string | null {
  return typeof text === "string" && readTraceparent(text) !== null ? text : null;
}

function readTraceparent(text: string | null): SpanContext | null {
  const found = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? "");
  if (found === null) return null;
  const [, traceId = "", spanId = "", flags = ""] = found;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
