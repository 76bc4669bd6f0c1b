/**
 * One claimed run while this worker executes it. An execution has parts, and each has one writer:
 *
 * - `claim`: the run as it was claimed. Nobody writes it.
 * - `progress`: the step, the attempt and the inbox. Written by `commit.ts`.
 * - `control`: abort, interrupt and stop. Written by itself.
 * - `transaction`: the open transaction of the present step. Written by itself.
 * - `observed`: spans and times. Written by the observer.
 *
 * Made by the worker for every claim, passed along by the functions that execute, decide and
 * commit.
 */

import type { AnyDefinition } from "../define/definition.js";
import type { Attempt, Observed } from "../observe/observer.js";
import type { ClaimedRun } from "../store/store.js";
import { retryCall } from "../timing/retry-delay.js";
import { monotonicMs } from "../values/monotonic-clock.js";
import { Control } from "./control.js";
import { Progress } from "./progress.js";
import { StepTransaction } from "./transaction.js";
import type { QueueClaimer, WorkerServices } from "./worker-services.js";

/** A run as it was claimed. */
export interface RunClaim {
  readonly run: ClaimedRun;
  readonly claimId: string;
  /** When the database answered the claim, on the clock of this process. */
  readonly claimedAtMs: number;
  readonly chain: Chain;
}

/**
 * Runs of one partition key that one slot executes one after the other: since when, and how many.
 */
interface Chain {
  readonly sinceMs: number;
  readonly count: number;
}

/** A step begins only if the database said within this time that its run is not paused. */
const pauseKnownMs = 500;

export class Execution {
  readonly runId: string;
  readonly claimId: string;
  readonly claim: RunClaim;
  readonly definition: AnyDefinition;
  /** Keeps the slot of the run filled. */
  readonly claimer: QueueClaimer;
  readonly services: WorkerServices;
  readonly progress: Progress;
  readonly control: Control;
  readonly transaction = new StepTransaction(this);
  readonly observed: Observed;
  /** On the clock that the heartbeat reads too. */
  readonly begunAtMs = monotonicMs();
  /** When the database last said whether the run is paused. */
  #toldAtMs: number;

  /** `onAborted` is called once, when the execution is aborted. */
  constructor(
    claim: RunClaim,
    definition: AnyDefinition,
    claimer: QueueClaimer,
    services: WorkerServices,
    onAborted: (execution: Execution) => void,
  ) {
    const { run } = claim;
    this.runId = run.runId;
    this.claimId = claim.claimId;
    this.claim = claim;
    this.#toldAtMs = claim.claimedAtMs;
    this.definition = definition;
    this.claimer = claimer;
    this.services = services;
    this.progress = new Progress(run);
    this.control = new Control(this, onAborted);
    this.observed = observedOf(run, definition, claimer.queue);
  }

  get queue(): string {
    return this.claimer.queue;
  }

  /** Whether its deadline has passed, by the clock of this process. */
  get isOverdue(): boolean {
    const { deadlineMs } = this.claim.run.extra ?? {};
    return deadlineMs !== undefined && monotonicMs() >= this.begunAtMs + deadlineMs;
  }

  /** The trace of the runs that it starts. */
  get traceparent(): string | null {
    const { stepSpan, span, trace } = this.observed;
    return stepSpan?.traceparent ?? span?.traceparent ?? trace;
  }

  /** The present attempt of a job, which has but one step, or of a machine. */
  get attempt(): Attempt {
    const { step, attempt } = this.progress;
    const name = this.definition.kind === "job" || step === null ? "run" : step;
    return { name, kind: "run", attempt };
  }

  /** The database has answered a write of this run, and says whether the run is paused. */
  told(isPaused: boolean | undefined): void {
    this.#toldAtMs = performance.now();
    if (isPaused === true) this.control.pause();
  }

  /**
   * Whether a step may begin: the run is not paused. Asks the database only if it has said nothing
   * for a while, as when a claimed run had to wait for its slot.
   */
  mayBeginStep(): boolean | Promise<boolean> {
    const { control } = this;
    if (control.isPaused) return false;
    return this.isTold || askIfPaused([this]).then(() => !control.isAborted && !control.isPaused);
  }

  /** Whether the database has said lately whether the run is paused. */
  get isTold(): boolean {
    return performance.now() - this.#toldAtMs < pauseKnownMs;
  }

  /**
   * Reads something for the run, or begins a transaction. An outage or a refusal only delays it.
   * Undefined: the claim is lost.
   */
  repeatWhileClaimed<T>(call: () => Promise<T>): Promise<T | undefined> {
    return retryCall(
      () => this.control.isAborted,
      call,
      (err) =>
        this.services.logger.warn({ err, runId: this.runId }, "pawl: a call for a run failed, trying again"),
    );
  }
}

/** Asks the database which of these runs are paused, in one call, and tells them. */
export async function askIfPaused(executions: readonly Execution[]): Promise<void> {
  const [first] = executions;
  const paused = await first?.repeatWhileClaimed(() => first.services.store.paused(executions));
  if (paused === undefined) return;
  for (const execution of executions) execution.told(paused.includes(execution.runId));
}

function observedOf(run: ClaimedRun, definition: AnyDefinition, queue: string): Observed {
  const { runId, attempt, startedMs, trace } = run;
  return {
    runId,
    definition,
    queue,
    attempt,
    startedMs,
    trace,
    span: null,
    status: "running",
    failure: null,
    calledMs: -1,
    tookMs: -1,
    stepSpan: null,
  };
}
