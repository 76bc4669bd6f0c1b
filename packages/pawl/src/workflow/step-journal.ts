/**
 * The journal of one invocation of a workflow's body. It records the outcomes of steps through the
 * batcher of journals, each with the next `seq`, and has them delivered to the body in the order of
 * `seq`: an outcome is on disk before the body sees it. Owned by the body.
 */

import { loseClaim } from "../run/commit.js";
import type { Execution } from "../run/execution.js";
import type { JournalVerdict } from "../run/worker-services.js";
import { failedStep } from "../store/failed-write.js";
import type { JournalChange, JournalEntry, StoredStep } from "../store/journal.js";
import { logFailure } from "../observe/failure-log.js";
import { describeError, type ErrorRecord, withoutStacksText } from "../values/error-record.js";
import type { Json } from "../values/json-types.js";
import { recordOf } from "./attempt.js";
import { Deliveries } from "./deliveries.js";
import { settle, type StepCall, toError } from "./step-call.js";

/** The database knows of the step, and it is not over. */
export type Pending = Extract<JournalVerdict, { kind: "pending" }>;
export type Answered = Exclude<JournalVerdict, { kind: "failed" }>;

export interface JournalHost {
  /** After the end of the body nothing is recorded or delivered. */
  isDead(): boolean;
  /** The last signal that the body knows of. */
  inboxSeq(): number;
  /** An outcome is about to be given to the body. */
  onOutcome(call: StepCall): void;
  /** An outcome was given to the body. */
  onDelivered(): void;
  /** The inbox goes up to this seq. */
  onInbox(inboxSeq: number): void;
  /** The database refuses this call of the body. */
  onRefused(call: StepCall, error: Error): void;
  /** The database refuses even the error of a step: nothing that the step does can be recorded. */
  onUnrecordable(error: Error): void;
}

export class StepJournal {
  readonly #execution: Execution;
  readonly #host: JournalHost;
  readonly #deliveries: Deliveries;
  #seq: number;
  /** The seq of a wait that ended without the body, so that its end was not reported yet. */
  readonly #unreportedSeq: number | null;

  constructor(execution: Execution, recorded: readonly StoredStep[], host: JournalHost) {
    this.#execution = execution;
    this.#host = host;
    this.#deliveries = new Deliveries(() => host.onDelivered());
    this.#seq = recorded.reduce((highest, { seq }) => Math.max(highest, seq ?? 0), 0);
    // Only the last wait ends so, when nothing else is pending. After a crash it may be reported
    // again.
    this.#unreportedSeq = recorded.some(({ seq }) => seq === null) ? null : this.#seq;
  }

  /** Nothing is recorded or delivered at the moment. */
  get isIdle(): boolean {
    return this.#deliveries.isIdle;
  }

  /** Delivers the recorded outcome of a step again. */
  replay(call: StepCall, seq: number, { output, error: record }: StoredStep): void {
    const error = record === null ? null : toError(call, record);
    if (seq === this.#unreportedSeq && call.kind !== "invoke") this.#reportWait(call, error);
    this.#deliver(call, seq, output, error);
  }

  /** A new entry, with its place in the order of delivery. It must be recorded or given up. */
  newEntry(call: StepCall, change: JournalChange): JournalEntry {
    return this.#entryAt(call, this.#nextSeq(), change);
  }

  /** The entry of this seq will not be recorded. */
  giveUp(seq: number): void {
    this.#deliveries.giveUp(seq);
  }

  /**
   * Records something about a step and has it delivered. Answers `Pending` if the step is not over.
   */
  async record(
    call: StepCall,
    given: JournalChange,
    value: Json | null,
    seq = this.#nextSeq(),
  ): Promise<Pending | null> {
    const change = this.#toRecord(given);
    const verdict = await this.#execution.services.journal.add(this.#entryAt(call, seq, change));
    if (this.#host.isDead()) return null;
    if (verdict.kind !== "failed") {
      const error = "error" in change && change.error !== null ? change.error : null;
      return this.accept(call, seq, verdict, value, error);
    }
    this.giveUp(seq);
    const refused = failedStep(verdict);
    if (!("attempt" in change)) {
      this.#host.onRefused(call, refused);
      return null;
    }
    if (change.op !== "retry" && change.error !== null) {
      this.#host.onUnrecordable(refused);
      return null;
    }
    const op = change.op === "retry" ? change.kind : change.op;
    const error = recordOf(refused);
    call.thrown = refused;
    return this.record(call, { op, attempt: call.attempt, output: null, error, tookMs: 0 }, null);
  }

  /**
   * Takes the answer to an entry: delivers the outcome, or answers `Pending` if the step is not
   * over.
   */
  accept(
    call: StepCall,
    seq: number,
    verdict: Answered,
    value: Json | null,
    error: string | null,
  ): Pending | null {
    const { observed, services } = this.#execution;
    if (verdict.kind !== "stale") this.#execution.told(verdict.paused);
    switch (verdict.kind) {
      case "recorded":
        if (error === null) {
          services.observer.stepEnded(observed, call, call, "step.completed");
          this.#deliver(call, seq, value, null);
        } else {
          services.observer.stepEnded(observed, call, call, "step.failed", { error: call.thrown });
          this.logFailure(call, "step", call.thrown);
          this.#deliver(call, seq, value, toError(call, JSON.parse(error) as ErrorRecord));
        }
        if (verdict.inboxSeq !== null) this.#host.onInbox(verdict.inboxSeq);
        return null;
      case "done": {
        this.giveUp(seq);
        const failed = verdict.error === null ? null : toError(call, verdict.error);
        this.#reportWait(call, failed);
        this.#deliver(call, verdict.seq, verdict.output, failed);
        return null;
      }
      case "pending":
        this.giveUp(seq);
        // A signal that this step did not want may be the one that another waits for.
        this.#host.onInbox(verdict.inboxSeq);
        return verdict;
      case "stale":
        loseClaim(this.#execution);
        return null;
    }
  }

  /** Forgets everything that was not delivered. */
  clear(): void {
    this.#execution.services.journal.drop(this.#execution.runId);
    this.#deliveries.clear();
  }

  #nextSeq(): number {
    const seq = ++this.#seq;
    this.#deliveries.begin(seq);
    return seq;
  }

  #entryAt({ name }: StepCall, seq: number, change: JournalChange): JournalEntry {
    const { runId, claimId } = this.#execution;
    return { runId, claimId, name, seq, inboxSeq: this.#host.inboxSeq(), change };
  }

  /** Reports that a sleep, an event or an invoked run is over. */
  #reportWait(call: StepCall, error: Error | null): void {
    const { observed, services } = this.#execution;
    const { name, kind, work } = call;
    if (work !== null || kind === "run" || kind === "transaction") return;
    services.observer.waited(observed, name, kind, error);
    if (error !== null) this.logFailure(call, "step", error);
  }

  /** Logs that an attempt at a step, or the step itself, failed. */
  logFailure({ name: step, attempt }: StepCall, what: "attempt" | "step", thrown: unknown): void {
    const { runId, definition, services } = this.#execution;
    logFailure(services.logger, what, { runId, definition, step, attempt, error: describeError(thrown) });
  }

  /** The entry as it is stored: without stacks, if the worker was told to record none. */
  #toRecord(change: JournalChange): JournalChange {
    if (this.#execution.services.recordStacks || !("error" in change) || change.error === null) return change;
    return { ...change, error: withoutStacksText(change.error) };
  }

  #deliver(call: StepCall, seq: number, output: Json | null, error: Error | null): void {
    this.#deliveries.add(seq, () => {
      this.#host.onOutcome(call);
      settle(call, output, error);
    });
  }
}
