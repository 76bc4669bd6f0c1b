/**
 * One claimed run while this worker executes it: where it stands, and whether its claim still holds. Made by the
 * claimer (or by a direct start), carried by the executor, ended by an outcome, an abort or the end of the worker.
 */

import type { AnyDefinition } from "../define/definition.js";
import { RunCancelled } from "../values/errors.js";
import type { Status } from "../values/phase.js";
import type { ClaimedRun, StoreTransaction } from "../store/store.js";
import { Incoming } from "./inbox.js";
import { monotonicMs } from "../values/monotonic.js";
import type { Attempt, Observed } from "../observe/observer.js";
import type { OpenSpan } from "../observe/tracing.js";

/** A run that is executed in the slot of the one before it. */
export interface Successor {
  readonly run: ClaimedRun;
  readonly claimId: string;
  readonly chain: Chain;
}

/** Runs handed over one after the other: since when, and how many. */
export interface Chain {
  readonly sinceMs: number;
  readonly count: number;
}

export class Execution implements Observed {
  readonly runId: string;
  readonly claimId: string;
  readonly definition: AnyDefinition;
  readonly queue: string;
  readonly crashes: number;
  readonly parentId: string | null;
  /** The key that this claim holds. */
  readonly partitionKey: string | null;
  readonly startedMs: number;
  /** The trace context that the run was started with. */
  readonly trace: string | null;
  readonly chain: Chain;
  /** What a workflow has recorded; null: it is to be read. */
  readonly journal: ClaimedRun["journal"];
  /** The names of the signals that were in a workflow's inbox; null: perhaps any. */
  readonly waiting: ClaimedRun["waiting"];
  /** The signals and children that its steps see. */
  readonly incoming: Incoming;
  /** On the clock that the heartbeat reads too. */
  readonly begunAtMs = monotonicMs();
  /** Applied transitions of this claim. */
  turn = 0;
  step: string | null;
  attempt: number;
  /** JSON as claimed, until it is loaded. */
  readonly input: string | null;
  state: string | null;
  /** The transaction that the present step has opened. */
  opened: StoreTransaction | null = null;
  /** What it is just opening, if it is. */
  opening: object | null = null;
  /** The next run in line for the key of this one, handed over by the commit that freed it. */
  successor: Successor | null = null;
  /** The claim is gone, or the run is cancelled: whatever the step still does is dropped. */
  aborted = false;
  /** The signal of this claim is used up: the next step needs a claim of its own. */
  interrupted = false;
  isStopping = false;
  /** An outcome has ended the claim. */
  isSettled = false;
  /** The database refuses whatever the run comes to. */
  isRefused = false;
  /** What its end, if it came to that, has made of it. */
  status: Exclude<Status, "cancelled"> = "running";
  /** The code of the error that it ended with. */
  failure: string | null = null;
  /** The span of this stretch of execution. */
  span: OpenSpan | null = null;
  /** The present step of a job or machine, if somebody looks. */
  calledMs = -1;
  tookMs = -1;
  stepSpan: OpenSpan | null = null;
  /** Called when the execution is aborted. */
  onAbort: (() => void) | undefined;
  /** Called too: how long its code may take to return is counted from here. */
  onLeft: ((execution: Execution) => void) | undefined;
  /** Whether it waits in its slot for a time or a signal, and nothing of it runs; undefined: never. */
  isAtRest: (() => boolean) | undefined;
  #controller: AbortController | undefined;
  #reason: unknown;

  constructor({ run, claimId, chain }: Successor, definition: AnyDefinition, queue: string) {
    this.runId = run.runId;
    this.chain = chain;
    this.claimId = claimId;
    this.definition = definition;
    this.queue = queue;
    this.crashes = run.crashes;
    this.parentId = run.parentId;
    this.partitionKey = run.partitionKey;
    this.startedMs = run.startedMs;
    this.trace = run.trace;
    this.journal = run.journal;
    this.waiting = run.waiting;
    this.incoming = new Incoming(run);
    this.step = run.step;
    this.attempt = run.attempt;
    this.input = run.input;
    this.state = run.state;
  }

  /** The trace of what it starts. */
  get traceparent(): string | null {
    return this.stepSpan?.traceparent ?? this.span?.traceparent ?? this.trace;
  }

  get isCancelled(): boolean {
    return this.#reason instanceof RunCancelled;
  }

  /** Made when a step first asks for it: most never do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted || this.interrupted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The step has taken too long: tell it, while the run goes on with the error. */
  interrupt(reason: Error): void {
    this.interrupted = true;
    this.#reason ??= reason;
    this.#controller?.abort(reason);
  }

  /** The worker stops: an outcome still counts, an error only means that the claim is let go. */
  interruptToStop(): void {
    this.isStopping = true;
    this.interrupt(new Error("the worker is stopping"));
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.onAbort?.();
    this.onLeft?.(this);
  }
}

/** The present attempt of a job, which has but one step, or of a machine. */
export function attemptOf({ definition, step, attempt }: Execution): Attempt {
  const name = definition.kind === "job" || step === null ? "run" : step;
  return { name, kind: "run", attempt };
}
