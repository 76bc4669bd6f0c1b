/**
 * One invocation of a workflow's body. It calls the body from the top, answers its steps from the
 * journal or executes them, and ends with its result, its error, or its suspension. The run is
 * suspended when the database knows of everything that the body waits for. After the end the body
 * is dead: its further steps are neither executed nor recorded, and never answered. Made and run by
 * `workflow/execute.ts`.
 */

import type { Execution } from "../run/execution.js";
import type { JournalChange, StepKind, StoredStep } from "../store/journal.js";
import { NondeterministicWorkflow } from "../values/errors.js";
import { perform, type Performed } from "./attempt.js";
import { DueWaits } from "./due-waits.js";
import { IdleCheck } from "./idle-check.js";
import { isForSignal, isSameEvent, newCall, type StepCall, type Work } from "./step-call.js";
import { type Pending, StepJournal } from "./step-journal.js";
import { StepNames } from "./step-names.js";
import { transact } from "./step-transaction.js";
import { type Suspension, suspensionOf } from "./suspension.js";

/** The run stays on its worker for a wait as short as this. */
const shortMs = 1_000;

export type BodyEnd =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  | ({ readonly kind: "suspended" } & Suspension)
  /** The claim is lost, the run cancelled, or the worker stops. */
  | { readonly kind: "aborted" };

export class Body {
  readonly #execution: Execution;
  readonly #names: StepNames;
  readonly #journal: StepJournal;
  /** The names of the signals that came with the claim; null: perhaps any. */
  readonly #signalsAtClaim: ReadonlySet<string> | null;
  /** The open steps, in the order in which the body called them. */
  readonly #calls = new Map<string, StepCall>();
  readonly #idle = new IdleCheck(() => this.#onIdle());
  readonly #dueWaits = new DueWaits((call) => this.#isDead || void this.#ask(call));
  /** How many functions of steps run. */
  #running = 0;
  /** The seq of the last signal that is known. */
  #inboxSeq: number;
  #isDead = false;
  #resolve!: (end: BodyEnd) => void;

  constructor(execution: Execution, recorded: readonly StoredStep[]) {
    const { waiting } = execution.claim.run;
    this.#execution = execution;
    this.#names = new StepNames(recorded);
    this.#signalsAtClaim = waiting === null ? null : new Set(waiting);
    this.#inboxSeq = execution.progress.inbox.seq;
    this.#journal = new StepJournal(execution, recorded, {
      isDead: () => this.#isDead,
      inboxSeq: () => this.#inboxSeq,
      onOutcome: (call) => {
        this.#calls.delete(call.name);
        this.#idle.onActivity();
      },
      onDelivered: () => this.#checkIdle(),
      onInbox: (inboxSeq) => this.#onInbox(inboxSeq),
      onRefused: (call, error) => this.refuse(call, error),
      onUnrecordable: (error) => this.#end({ kind: "threw", error }),
    });
  }

  /** Calls the body. Resolves when this invocation has ended. Never rejects. */
  async run(call: () => unknown): Promise<BodyEnd> {
    const { control } = this.#execution;
    const ended = new Promise<BodyEnd>((resolve) => {
      this.#resolve = resolve;
    });
    control.setBody({ onAbort: () => this.#onAbort(), isAtRest: () => this.#isAtRest() });
    if (control.isAborted) this.#onAbort();
    else void this.#call(call);
    return ended;
  }

  async #call(call: () => unknown): Promise<void> {
    try {
      const value = await call();
      if (!this.#isDead) this.#end({ kind: "returned", value });
    } catch (error) {
      if (!this.#isDead) this.#end({ kind: "threw", error });
    }
  }

  /**
   * One call of a step. It is answered with its recorded outcome; without one, `begin` begins it.
   * The value has the type that the user's code gives to it.
   */
  step(
    kind: StepKind,
    given: unknown,
    begin: (call: StepCall, pending: StoredStep | undefined) => void,
  ): Promise<never> {
    if (this.#isDead) return new Promise(() => {});
    const promise = new Promise<never>((resolve, reject) => {
      const taken = this.#takeName(kind, given);
      if (taken === null) return;
      const { name, recorded } = taken;
      this.#idle.onActivity();
      const call = newCall(kind, name, resolve as (value: unknown) => void, reject);
      this.#calls.set(name, call);
      if (recorded !== undefined && recorded.seq !== null) {
        this.#journal.replay(call, recorded.seq, recorded);
        return;
      }
      try {
        begin(call, recorded);
      } catch (error) {
        this.#calls.delete(name);
        throw error;
      }
    });
    // A failed step that the body does not await must not end the process.
    promise.catch(() => {});
    return promise;
  }

  /**
   * The name of a step, and its record. If the record is of another kind, the run ends: no code can
   * catch that.
   */
  #takeName(kind: StepKind, given: unknown): ReturnType<StepNames["take"]> | null {
    try {
      return this.#names.take(kind, given);
    } catch (error) {
      if (!(error instanceof NondeterministicWorkflow)) throw error;
      this.#end({ kind: "threw", error });
      return null;
    }
  }

  /** Begins a step that is a function, or continues its retries. */
  work(call: StepCall, work: Work, pending: StoredStep | undefined): void {
    call.work = work;
    if (pending !== undefined) {
      call.attempt = pending.attempt;
      this.#wait(call, { ...pending, inboxSeq: 0, childId: null });
    } else {
      this.#attempt(call, work);
    }
  }

  /**
   * Begins a wait. If it is recorded, asks whether it is over, unless the claim says that it is
   * not.
   */
  wait(call: StepCall, question: JournalChange, pending: StoredStep | undefined): void {
    // The check of an invoke's input may have outlived the body.
    if (this.#isDead) return;
    call.question = question;
    call.childId = pending?.childId ?? null;
    if (pending !== undefined && !this.#mayBeOver(question, pending)) {
      this.#wait(call, { ...pending, inboxSeq: this.#inboxSeq });
      return;
    }
    if (pending !== undefined && pending.dueMs !== null && pending.dueMs <= 0) {
      call.dueAt = pending.dueAt;
      this.#dueWaits.add(call);
      return;
    }
    if (pending === undefined) this.#unlessPaused(call, () => this.#beginWait(call, question));
    else this.#beginWait(call, question);
  }

  #beginWait(call: StepCall, question: JournalChange): void {
    // An earlier wait for the same event is asked about first: the event may have come meanwhile.
    for (const earlier of this.#calls.values()) {
      if (earlier === call) break;
      if (earlier.state === "waiting" && isSameEvent(earlier.question, question)) void this.#ask(earlier);
    }
    void this.#ask(call);
  }

  #mayBeOver(question: JournalChange, { childId, dueMs }: StoredStep): boolean {
    if (dueMs !== null && dueMs <= 0) return true;
    if (question.op === "sleep") return false;
    const name = question.op === "wait" ? question.event : `~${childId}`;
    const hasNewSignals = this.#inboxSeq > this.#execution.progress.inbox.seq;
    return this.#signalsAtClaim === null || this.#signalsAtClaim.has(name) || hasNewSignals;
  }

  /** A call with wrong arguments, or one that the database refuses. */
  refuse(call: StepCall, error: Error): void {
    if (this.#isDead) return;
    this.#calls.delete(call.name);
    call.reject(error);
    this.#checkIdle();
  }

  #attempt(call: StepCall, work: Work): void {
    if (this.#execution.services.worker.isStopping()) this.#hold(call);
    else this.#unlessPaused(call, () => void this.#perform(call, work));
  }

  /** Begins a step, unless the run is paused. */
  #unlessPaused(call: StepCall, begin: () => void): void {
    const mayBegin = this.#execution.mayBeginStep();
    if (mayBegin === true) return begin();
    call.state = "asking";
    void Promise.resolve(mayBegin).then((may) => {
      if (this.#isDead) return;
      if (may) begin();
      else this.#hold(call);
    });
  }

  /** The step does not begin: once no other runs, the worker releases the claim. */
  #hold(call: StepCall): void {
    call.state = "held";
    this.#checkIdle();
  }

  async #perform(call: StepCall, work: Work): Promise<void> {
    const { control, observed, services } = this.#execution;
    const { observer } = services;
    call.state = "running";
    this.#running++;
    observer.stepBegins(observed, call, call);
    const attempt = (): Promise<Performed | null> =>
      call.kind === "transaction" ? this.#transact(call, work) : perform(call, work, this.#execution);
    const performed = await (call.stepSpan === null ? attempt() : call.stepSpan.call(attempt));
    observer.stepReturned(call);
    this.#running--;
    if (this.#isDead || performed === null) {
      observer.stepDropped(call);
      if (this.#isDead) this.#resolveIfQuiet();
      return;
    }
    const { entry, value, thrown } = performed;
    call.thrown = thrown;
    if (entry.error !== null && control.isStopping) {
      // An error of a step that was told to stop says nothing about it.
      observer.stepDropped(call);
      control.abort(new Error("the worker is stopping"));
      return;
    }
    const pending = await this.#journal.record(call, entry, value);
    if (pending === null) {
      observer.stepDropped(call);
      return;
    }
    observer.stepEnded(observed, call, call, "step.retried", { delayMs: pending.dueMs ?? 0, error: thrown });
    this.#journal.logFailure(call, "attempt", thrown);
    call.attempt++;
    this.#wait(call, pending);
  }

  /**
   * Calls the function of a transaction and records it there. If that failed, answers what to
   * record instead.
   */
  async #transact(call: StepCall, work: Work): Promise<Performed | null> {
    const done = await transact(call, work, this.#execution, {
      isDead: () => this.#isDead,
      newEntry: (change) => this.#journal.newEntry(call, change),
      giveUp: (seq) => this.#journal.giveUp(seq),
    });
    if (done.kind === "performed") return done.performed;
    if (this.#isDead || done.kind === "lost") return null;
    // The journal knows whether an unknown commit happened; if so, under this seq.
    if (done.kind === "unknown") void this.#ask(call, done.seq);
    else this.#journal.accept(call, done.seq, done.verdict, done.value, null);
    return null;
  }

  /** Asks the database about a wait. */
  async #ask(call: StepCall, seq?: number): Promise<void> {
    const { runId, services } = this.#execution;
    call.state = "asking";
    call.stopTimer?.();
    call.stopTimer = undefined;
    const { question } = call;
    const pending = await this.#journal.record(call, question, null, seq);
    if (pending === null) return;
    if (question.op === "invoke" && call.childId === null) {
      services.hub.hint(question.child.queue);
      services.observer.started([question.child], runId);
    }
    this.#wait(call, pending);
  }

  /**
   * The database knows of this wait: until when, or for which child. A function that is due is
   * called.
   */
  #wait(
    call: StepCall,
    { dueMs, dueAt, childId, inboxSeq }: Pick<Pending, "dueMs" | "dueAt" | "childId" | "inboxSeq">,
  ): void {
    call.dueAt = dueAt;
    call.dueAtMs = dueMs === null ? null : performance.now() + dueMs;
    call.childId = childId;
    call.triedSeq = inboxSeq;
    if (call.work !== null && (dueMs === null || dueMs <= 0)) {
      this.#attempt(call, call.work);
    } else if (call.work !== null && dueMs !== null && dueMs < shortMs) {
      call.state = "running";
      this.#startTimer(call);
    } else {
      call.state = "waiting";
      if (isForSignal(call) && this.#inboxSeq > inboxSeq) void this.#ask(call);
      else this.#checkIdle();
    }
  }

  #startTimer(call: StepCall): void {
    if (call.dueAtMs === null || call.stopTimer !== undefined) return;
    const leftMs = call.dueAtMs - performance.now();
    call.stopTimer = this.#execution.services.hub.clock.after(leftMs, () => void this.#ask(call));
  }

  /** The inbox goes up to this seq: asks again about all waits for signals. */
  #onInbox(inboxSeq: number): void {
    if (this.#isDead || inboxSeq <= this.#inboxSeq) return;
    this.#inboxSeq = inboxSeq;
    for (const call of this.#calls.values()) {
      if (call.state === "waiting" && isForSignal(call) && call.triedSeq < inboxSeq) void this.#ask(call);
    }
  }

  /** Decides, once the body has had a whole turn and did nothing, whether to stay. */
  #checkIdle(): void {
    if (!this.#isDead && this.#calls.size > 0) this.#idle.check();
  }

  #onIdle(): void {
    if (this.#isDead || !this.#journal.isIdle || this.#calls.size === 0) return;
    const { runId, control, services } = this.#execution;
    const calls = [...this.#calls.values()];
    const has = (state: StepCall["state"]): boolean => calls.some((call) => call.state === state);
    if (has("asking")) return;
    if (has("running")) {
      const waiting = calls.filter(({ state }) => state === "waiting");
      for (const call of waiting) this.#startTimer(call);
      if (!waiting.some(isForSignal)) return;
      services.inboxes.watch(runId, (inboxSeq) => this.#onInbox(inboxSeq));
    } else if (has("held")) {
      if (!control.isPaused) control.stop();
      control.abort(new Error(control.isPaused ? "the run is paused" : "the worker is stopping"));
    } else {
      this.#end({ kind: "suspended", ...suspensionOf(calls, performance.now()) });
    }
  }

  /** It waits only for times and signals, and stays because one may come soon. */
  #isAtRest(): boolean {
    if (this.#isDead || this.#idle.isChecking || this.#running > 0 || !this.#journal.isIdle) return false;
    return this.#calls.size > 0 && [...this.#calls.values()].every(({ state }) => state !== "asking");
  }

  #onAbort(): void {
    if (this.#isDead) return;
    this.#kill();
    this.#resolveIfQuiet();
  }

  /** The slot is free once no function of a step runs. */
  #resolveIfQuiet(): void {
    if (this.#running === 0) this.#resolve({ kind: "aborted" });
  }

  #end(end: BodyEnd): void {
    this.#kill();
    // Functions that still run are not waited for, and not recorded.
    if (end.kind !== "suspended") this.#execution.control.interrupt(new Error("the workflow has ended"));
    this.#resolve(end);
  }

  #kill(): void {
    const { runId, control, services } = this.#execution;
    this.#isDead = true;
    control.setBody(null);
    services.inboxes.forget(runId);
    this.#journal.clear();
    for (const { stopTimer } of this.#calls.values()) stopTimer?.();
    this.#calls.clear();
  }
}
