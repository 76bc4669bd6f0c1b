/**
 * One invocation of a workflow's body: calls it from the top, answers its steps from the journal or does them, and ends with
 * its result, its error, or its suspension, when all it waits for is known to the database. Each outcome is recorded before the body
 * sees it, and given to it in order (`deliveries.ts`). After the end the body is dead: its further steps
 * are neither done nor recorded, and never answered. Made and run by `workflow/execute.ts`.
 */

import type { ErrorRecord } from "../values/error-record.js";
import { NondeterministicWorkflow } from "../values/errors.js";
import type { Json } from "../values/json-types.js";
import type { JournalChange, JournalEntry, RecordVerdict, StepKind, StoredStep } from "../store/journal.js";
import { perform, recordOf, type Performed } from "./attempt.js";
import { loseClaim } from "../run/commit.js";
import { Deliveries } from "./deliveries.js";
import type { Execution } from "../run/execution.js";
import { Overdue } from "./due-timer.js";
import { isForSignal, isSameEvent, newCall, settle, type StepCall, type Work } from "./step-call.js";
import { StepNames } from "./step-names.js";
import { refusal, transact } from "./step-transaction.js";
import type { Surroundings } from "../run/worker-services.js";
import { type Suspension, suspensionOf } from "./suspension.js";
import { onNextTurn } from "../timing/next-turn.js";

/** A rest this short does not take the run off its worker. */
const shortMs = 1_000;

type Pending = Extract<RecordVerdict, { kind: "pending" }>;

export type BodyEnd =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  | ({ readonly kind: "suspended" } & Suspension)
  /** The claim is lost, the run cancelled, or the worker stops. */
  | { readonly kind: "aborted" };

export class Body {
  readonly #execution: Execution;
  readonly #around: Surroundings;
  readonly #names: StepNames;
  /** The names of the signals that came with the claim; null: perhaps any. */
  readonly #waiting: ReadonlySet<string> | null;
  /** What the body waits for, in the order of its calls. */
  readonly #calls = new Map<string, StepCall>();
  readonly #deliveries = new Deliveries(() => this.#consider());
  readonly #overdue = new Overdue((call) => this.#isDead || void this.#ask(call));
  /** How many functions of steps run. */
  #running = 0;
  #seq: number;
  /** The seq of a wait that has ended without the body, so that nobody was told yet: its time came, or a signal woke the run. */
  readonly #untoldSeq: number | null;
  /** The seq of the last signal that is known of. */
  #inboxSeq: number;
  /** Counts what the body does, to notice a turn in which it did nothing. */
  #doings = 0;
  #isConsidering = false;
  #isDead = false;
  #end!: (end: BodyEnd) => void;

  constructor(execution: Execution, around: Surroundings, journal: readonly StoredStep[]) {
    this.#execution = execution;
    this.#around = around;
    this.#names = new StepNames(journal);
    this.#waiting = execution.waiting === null ? null : new Set(execution.waiting);
    this.#inboxSeq = execution.incoming.inboxSeq;
    this.#seq = journal.reduce((highest, { seq }) => Math.max(highest, seq ?? 0), 0);
    // Only a lone one ends so: then nothing else is pending, and it is the last. After a crash it may be told again.
    this.#untoldSeq = journal.some(({ seq }) => seq === null) ? null : this.#seq;
  }

  /** Calls the body; resolves when this invocation has come to its end. Never rejects. */
  async run(call: () => unknown): Promise<BodyEnd> {
    const ended = new Promise<BodyEnd>((resolve) => {
      this.#end = resolve;
    });
    this.#execution.onAbort = () => this.#abort();
    this.#execution.isAtRest = () => this.#isAtRest();
    if (this.#execution.aborted) this.#abort();
    else void this.#call(call);
    return ended;
  }

  async #call(call: () => unknown): Promise<void> {
    try {
      const value = await call();
      if (!this.#isDead) this.#die({ kind: "returned", value });
    } catch (error) {
      if (!this.#isDead) this.#die({ kind: "threw", error });
    }
  }

  /** One call of a step: what is recorded of it, or else what `begin` makes of it. */
  step(
    kind: StepKind,
    given: unknown,
    begin: (call: StepCall, pending: StoredStep | undefined) => void,
  ): Promise<unknown> {
    if (this.#isDead) return new Promise(() => {});
    const promise = new Promise<unknown>((resolve, reject) => {
      const taken = this.#takeName(kind, given);
      if (taken === null) return;
      const { name, recorded } = taken;
      this.#doings++;
      const call = newCall(kind, name, resolve, reject);
      this.#calls.set(name, call);
      if (recorded !== undefined && recorded.seq !== null) {
        if (recorded.seq === this.#untoldSeq && kind !== "invoke") this.#observeWait(call, recorded.error);
        this.#deliver(call, recorded.seq, recorded.output, recorded.error);
        return;
      }
      try {
        begin(call, recorded);
      } catch (error) {
        this.#calls.delete(name);
        throw error;
      }
    });
    // A step that fails and that nobody waits for must not end the process.
    promise.catch(() => {});
    return promise;
  }

  /** The name of a step that is called, and what is recorded of it. A step that was something else ends the run: nobody can catch that. */
  #takeName(kind: StepKind, given: unknown): ReturnType<StepNames["take"]> | null {
    try {
      return this.#names.take(kind, given);
    } catch (error) {
      if (!(error instanceof NondeterministicWorkflow)) throw error;
      this.#die({ kind: "threw", error });
      return null;
    }
  }

  /** Begins a step that is a function, or goes on with its retries. */
  work(call: StepCall, work: Work, pending: StoredStep | undefined): void {
    call.work = work;
    if (pending !== undefined) {
      call.attempt = pending.attempt;
      this.#wait(call, { ...pending, inboxSeq: 0, childId: null });
    } else {
      void this.#attempt(call, work);
    }
  }

  /** Begins a wait, or looks whether it is over, unless what came with the claim says that it is not. */
  wait(call: StepCall, question: JournalChange, pending: StoredStep | undefined): void {
    // The input of an invoke may have been checked for longer than the body has lived.
    if (this.#isDead) return;
    call.question = question;
    call.childId = pending?.childId ?? null;
    if (pending !== undefined && !this.#mayBeOver(question, pending)) {
      this.#wait(call, { ...pending, inboxSeq: this.#inboxSeq });
      return;
    }
    if (pending !== undefined && pending.dueMs !== null && pending.dueMs <= 0) {
      call.dueAt = pending.dueAt;
      this.#overdue.add(call);
      return;
    }
    // Who has waited for this event before is asked about first: it may have come meanwhile.
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
    return (
      this.#waiting === null || this.#waiting.has(name) || this.#inboxSeq > this.#execution.incoming.inboxSeq
    );
  }

  /** A call that is wrong. */
  refuse(call: StepCall, error: Error): void {
    if (this.#isDead) return;
    this.#calls.delete(call.name);
    call.reject(error);
    this.#consider();
  }

  async #attempt(call: StepCall, work: Work): Promise<void> {
    if (this.#around.isStopping()) {
      call.state = "held";
      this.#consider();
      return;
    }
    call.state = "running";
    this.#running++;
    const { observer } = this.#around;
    observer.stepBegins(this.#execution, call, call);
    const attempt = (): Promise<Performed | null> =>
      call.kind === "transaction"
        ? this.#transact(call, work)
        : perform(call, work, this.#execution, this.#around);
    const performed = await (call.stepSpan === null ? attempt() : call.stepSpan.call(attempt));
    observer.stepReturned(call);
    this.#running--;
    if (this.#isDead) {
      observer.stepDropped(call);
      this.#tellIfQuiet();
      return;
    }
    if (performed === null) {
      observer.stepDropped(call);
      return;
    }
    const { entry, value } = performed;
    if (entry.error !== null && this.#execution.isStopping) {
      // An error of a step that was told to stop says nothing about it.
      observer.stepDropped(call);
      this.#execution.abort(new Error("the worker is stopping"));
      return;
    }
    const pending = await this.#record(call, entry, value);
    if (pending === null) {
      observer.stepDropped(call);
      return;
    }
    observer.stepEnded(this.#execution, call, call, "step.retried", pending.dueMs ?? 0);
    call.attempt++;
    this.#wait(call, pending);
  }

  /** Calls the function of a transaction and records it there; gives what is left to record, if it failed. */
  async #transact(call: StepCall, work: Work): Promise<Performed | null> {
    const done = await transact(call, work, this.#execution, this.#around, {
      isDead: () => this.#isDead,
      entryOf: (change) => this.#entry(call, this.#beginDelivery(), change),
      giveUp: (seq) => this.#deliveries.giveUp(seq),
    });
    if (done.kind === "performed") return done.performed;
    if (this.#isDead || done.kind === "lost") return null;
    // The journal knows whether an unknown one is committed; if so, under this seq.
    if (done.kind === "unknown") void this.#ask(call, done.seq);
    else this.#take(call, done.seq, done.verdict, done.value, null);
    return null;
  }

  /** Asks the database about a wait. */
  async #ask(call: StepCall, seq?: number): Promise<void> {
    call.state = "asking";
    call.stopTimer?.();
    call.stopTimer = undefined;
    const { question } = call;
    const pending = await this.#record(call, question, null, seq);
    if (pending === null) return;
    if (question.op === "invoke" && call.childId === null) {
      this.#around.hub.nudge(question.child.queue);
      this.#around.observer.started([question.child], this.#execution.runId);
    }
    this.#wait(call, pending);
  }

  /** The database knows of this wait: until when, or for which child. A function whose time has come is called. */
  #wait(
    call: StepCall,
    { dueMs, dueAt, childId, inboxSeq }: Pick<Pending, "dueMs" | "dueAt" | "childId" | "inboxSeq">,
  ): void {
    call.dueAt = dueAt;
    call.dueAtMs = dueMs === null ? null : performance.now() + dueMs;
    call.childId = childId;
    call.triedSeq = inboxSeq;
    if (call.work !== null && (dueMs === null || dueMs <= 0)) {
      void this.#attempt(call, call.work);
    } else if (call.work !== null && dueMs !== null && dueMs < shortMs) {
      call.state = "running";
      this.#startTimer(call);
    } else {
      call.state = "waiting";
      if (isForSignal(call) && this.#inboxSeq > inboxSeq) void this.#ask(call);
      else this.#consider();
    }
  }

  #startTimer(call: StepCall): void {
    if (call.dueAtMs === null || call.stopTimer !== undefined) return;
    const leftMs = call.dueAtMs - performance.now();
    call.stopTimer = this.#around.hub.clock.after(leftMs, () => void this.#ask(call));
  }

  /** Records something of a step and has it delivered; gives the answer if the step is not over. */
  async #record(
    call: StepCall,
    change: JournalChange,
    value: Json | null,
    seq = this.#beginDelivery(),
  ): Promise<Pending | null> {
    const verdict = await this.#around.journal.add(this.#entry(call, seq, change));
    if (this.#isDead) return null;
    if (verdict.kind !== "failed") {
      const error = "error" in change && change.error !== null ? change.error : null;
      return this.#take(call, seq, verdict, value, error);
    }
    this.#deliveries.giveUp(seq);
    if ("attempt" in change && change.op !== "retry" && change.error !== null) {
      // The database refuses even the error: nothing that the step comes to can be recorded.
      this.#die({ kind: "threw", error: refusal(verdict) });
      return null;
    }
    if ("attempt" in change) {
      const op = change.op === "retry" ? change.kind : change.op;
      const error = recordOf(refusal(verdict));
      return this.#record(call, { op, attempt: call.attempt, output: null, error, tookMs: 0 }, null);
    }
    this.refuse(call, refusal(verdict));
    return null;
  }

  #beginDelivery(): number {
    const seq = ++this.#seq;
    this.#deliveries.begin(seq);
    return seq;
  }

  #entry({ name }: StepCall, seq: number, change: JournalChange): JournalEntry {
    const { runId, claimId } = this.#execution;
    return { runId, claimId, name, seq, inboxSeq: this.#inboxSeq, change };
  }

  /** Takes the answer to an entry: has it delivered, or gives it back if the step is not over. */
  #take(
    call: StepCall,
    seq: number,
    verdict: Exclude<RecordVerdict, { kind: "failed" }>,
    value: Json | null,
    error: string | null,
  ): Pending | null {
    switch (verdict.kind) {
      case "recorded":
        this.#around.observer.stepEnded(
          this.#execution,
          call,
          call,
          error === null ? "step.completed" : "step.failed",
        );
        this.#deliver(call, seq, value, error === null ? null : (JSON.parse(error) as ErrorRecord));
        if (verdict.inboxSeq !== null) this.#hear(verdict.inboxSeq);
        return null;
      case "done":
        this.#deliveries.giveUp(seq);
        this.#observeWait(call, verdict.error);
        this.#deliver(call, verdict.seq, verdict.output, verdict.error);
        return null;
      case "pending":
        this.#deliveries.giveUp(seq);
        // What this one did not want may be what another waits for.
        this.#hear(verdict.inboxSeq);
        return verdict;
      case "stale":
        loseClaim(this.#execution, this.#around);
        return null;
      case "busy":
        throw new Error("the flusher answered busy");
    }
  }

  /** Tells that a sleep, an event or an invoked run is over. */
  #observeWait({ name, kind, work }: StepCall, error: ErrorRecord | null): void {
    const isWait = work === null && kind !== "run" && kind !== "transaction";
    if (isWait) this.#around.observer.waited(this.#execution, name, kind, error !== null);
  }

  #deliver(call: StepCall, seq: number, output: Json | null, error: ErrorRecord | null): void {
    this.#deliveries.add(seq, () => {
      this.#calls.delete(call.name);
      this.#doings++;
      settle(call, output, error);
    });
  }

  /** The inbox goes up to this seq: whatever waits for a signal is to be asked about again. */
  #hear(inboxSeq: number): void {
    if (this.#isDead || inboxSeq <= this.#inboxSeq) return;
    this.#inboxSeq = inboxSeq;
    for (const call of this.#calls.values()) {
      if (call.state === "waiting" && isForSignal(call) && call.triedSeq < inboxSeq) void this.#ask(call);
    }
  }

  /** Looks, once the body has had a whole turn and did nothing, whether there is anything to stay for. */
  #consider(): void {
    if (this.#isConsidering || this.#isDead || this.#calls.size === 0) return;
    this.#isConsidering = true;
    const doings = this.#doings;
    onNextTurn(() => {
      this.#isConsidering = false;
      if (this.#isDead) return;
      if (doings === this.#doings) this.#decide();
      else this.#consider();
    });
  }

  #decide(): void {
    if (!this.#deliveries.isIdle || this.#calls.size === 0) return;
    const calls = [...this.#calls.values()];
    const has = (state: StepCall["state"]): boolean => calls.some((call) => call.state === state);
    if (has("asking")) return;
    if (has("running")) {
      const waiting = calls.filter(({ state }) => state === "waiting");
      for (const call of waiting) this.#startTimer(call);
      if (!waiting.some(isForSignal)) return;
      this.#around.watcher.watch(this.#execution.runId, (inboxSeq) => this.#hear(inboxSeq));
    } else if (has("held")) {
      this.#execution.interruptToStop();
      this.#execution.abort(new Error("the worker is stopping"));
    } else {
      this.#die({ kind: "suspended", ...suspensionOf(calls, performance.now()) });
    }
  }

  /** All that it waits for is a time or a signal, and it stays only because that may be soon. */
  #isAtRest(): boolean {
    if (this.#isDead || this.#isConsidering || this.#running > 0 || !this.#deliveries.isIdle) return false;
    return this.#calls.size > 0 && [...this.#calls.values()].every(({ state }) => state !== "asking");
  }

  #abort(): void {
    if (this.#isDead) return;
    this.#kill();
    this.#tellIfQuiet();
  }

  /** The slot is free once no function of a step runs any more. */
  #tellIfQuiet(): void {
    if (this.#running === 0) this.#end({ kind: "aborted" });
  }

  #die(end: BodyEnd): void {
    this.#kill();
    // What still runs is not waited for, and not recorded.
    if (end.kind !== "suspended") this.#execution.interrupt(new Error("the workflow has ended"));
    this.#end(end);
  }

  #kill(): void {
    this.#isDead = true;
    this.#execution.onAbort = undefined;
    this.#around.watcher.forget(this.#execution.runId);
    this.#around.journal.drop(this.#execution.runId);
    this.#deliveries.clear();
    for (const { stopTimer } of this.#calls.values()) stopTimer?.();
    this.#calls.clear();
  }
}
