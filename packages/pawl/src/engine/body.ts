/**
 * One invocation of a workflow's body: calls it from the top, answers its steps from the journal or does them, and ends with
 * its result, its error, or its suspension, when all it waits for is known to the database. Each outcome is recorded before the body
 * sees it, and given to it in order (`deliveries.ts`). After the end the body is dead: its further steps
 * are neither done nor recorded, and never answered. Made and run by `workflow.ts`.
 */

import { toMilliseconds } from "../define/duration.js";
import { describeError } from "../define/error-record.js";
import {
  InvalidOption,
  InvalidOutcome,
  NondeterministicWorkflow,
  NonRetryable,
  NotSerializable,
  PayloadTooLarge,
  StepTimeout,
} from "../define/errors.js";
import { toJson } from "../define/json.js";
import { checkStepName } from "../define/names.js";
import { backoffMs } from "../define/retry.js";
import type { ErrorRecord } from "../define/error-record.js";
import type { Json } from "../define/json-types.js";
import type { JournalChange, RecordVerdict, StepKind, StoredStep, Transition } from "../store/store.js";
import { Deliveries } from "./deliveries.js";
import type { Execution } from "./execution.js";
import { settle, type StepCall, type Work } from "./step-call.js";
import { StepSignal } from "./step-signal.js";
import type { Surroundings } from "./surroundings.js";
import { onNextTurn } from "./turn.js";

/** A wait this short does not take the run off its worker. */
const restMs = 1_000;
const longestTimerMs = 2_147_483_647;

export type BodyEnd =
  /** `unfinished`: steps whose function was still running. */
  | { readonly kind: "returned"; readonly value: unknown; readonly unfinished: readonly string[] }
  | { readonly kind: "threw"; readonly error: unknown }
  | {
      readonly kind: "suspended";
      readonly transition: Extract<Transition, { kind: "suspend" }>;
      readonly dueMs: number | null;
    }
  /** The claim is lost, the run cancelled, or the worker stops. */
  | { readonly kind: "aborted" };

export class Body {
  readonly #execution: Execution;
  readonly #around: Surroundings;
  readonly #journal: ReadonlyMap<string, StoredStep>;
  readonly #names = new Set<string>();
  /** What the body waits for, in the order of its calls. */
  readonly #calls = new Map<string, StepCall>();
  readonly #deliveries = new Deliveries(() => this.#consider());
  #running = 0;
  #seq: number;
  /** The seq of the last signal that is known of. */
  #inboxSeq = 0;
  /** Counts what the body does, to notice a turn in which it did nothing. */
  #doings = 0;
  #isConsidering = false;
  #isDead = false;
  #end!: (end: BodyEnd) => void;

  constructor(execution: Execution, around: Surroundings, journal: readonly StoredStep[]) {
    this.#execution = execution;
    this.#around = around;
    this.#journal = new Map(journal.map((step) => [step.name, step]));
    this.#seq = journal.reduce((highest, { seq }) => Math.max(highest, seq ?? 0), 0);
  }

  /** Calls the body; resolves when this invocation has come to its end. Never rejects. */
  async run(call: () => unknown): Promise<BodyEnd> {
    const ended = new Promise<BodyEnd>((resolve) => {
      this.#end = resolve;
    });
    this.#execution.onAbort = () => this.#abort();
    void (async () => {
      try {
        const value = await call();
        if (!this.#isDead) this.#die({ kind: "returned", value, unfinished: this.#unfinished() });
      } catch (error) {
        if (!this.#isDead) this.#die({ kind: "threw", error });
      }
    })();
    if (this.#execution.aborted) this.#abort();
    return ended;
  }

  /** One call of a step: what is recorded of it, or else what `begin` makes of it. */
  step(
    kind: StepKind,
    name: unknown,
    begin: (call: StepCall, pending: StoredStep | undefined) => void,
  ): Promise<unknown> {
    if (this.#isDead) return new Promise(() => {});
    const promise = new Promise<unknown>((resolve, reject) => {
      const checked = this.#checkName(name);
      const recorded = this.#journal.get(checked);
      if (recorded !== undefined && recorded.kind !== kind) throw changedKind(checked, recorded.kind, kind);
      this.#doings++;
      const call: StepCall = {
        name: checked,
        kind,
        resolve,
        reject,
        state: "asking",
        work: null,
        attempt: 0,
        question: { op: "due" },
        childId: null,
        dueAt: null,
        dueAtMs: null,
        triedSeq: 0,
        timer: undefined,
      };
      this.#calls.set(checked, call);
      if (recorded !== undefined && recorded.seq !== null) {
        this.#deliver(call, recorded.seq, recorded.output, recorded.error);
        return;
      }
      try {
        begin(call, recorded);
      } catch (error) {
        this.#calls.delete(checked);
        throw error;
      }
    });
    // A step that fails and that nobody waits for must not end the process.
    promise.catch(() => {});
    return promise;
  }

  /** Begins a step that is a function, or goes on with its retries. */
  work(call: StepCall, work: Work, pending: StoredStep | undefined): void {
    call.work = work;
    if (pending === undefined) {
      void this.#attempt(call, work);
      return;
    }
    call.attempt = pending.attempt;
    if (pending.dueMs === null || pending.dueMs <= 0) void this.#attempt(call, work);
    else this.#wait(call, { ...pending, inboxSeq: 0, childId: null });
  }

  /** Begins a wait, or looks whether it is over. */
  wait(call: StepCall, question: JournalChange): void {
    call.question = question;
    void this.#ask(call);
  }

  /** What became of a call was decided without the database. */
  refuse(call: StepCall, error: Error): void {
    if (this.#isDead) return;
    this.#calls.delete(call.name);
    call.reject(error);
    this.#consider();
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  async #attempt(call: StepCall, work: Work): Promise<void> {
    if (this.#around.isStopping()) {
      call.state = "held";
      this.#consider();
      return;
    }
    call.state = "running";
    this.#running++;
    const begunMs = performance.now();
    const change = await this.#perform(call, work, begunMs);
    this.#running--;
    if (this.#isDead) {
      this.#tellIfQuiet();
      return;
    }
    if (change === null) return;
    const verdict = await this.#record(call, change.entry, change.value);
    if (verdict?.kind === "pending") this.#rest(call, verdict);
  }

  /** Calls the function of a step; gives what to record of it, null if nothing is to be. */
  async #perform(
    call: StepCall,
    { fn, policy }: Work,
    begunMs: number,
  ): Promise<{ entry: JournalChange; value: Json | null } | null> {
    const op = call.kind === "transaction" ? "transaction" : "run";
    const tookMs = (): number => Math.round(performance.now() - begunMs);
    const { attempt } = call;
    const signal = new StepSignal(this.#execution, attempt);
    try {
      const returned = await this.#withinTime(fn(signal), signal);
      const { text, value } = toJson(returned, "result", this.#around.maxPayloadBytes);
      return { entry: { op, attempt, output: text, error: null, tookMs: tookMs() }, value };
    } catch (error) {
      if (this.#execution.aborted || this.#isDead) return null;
      if (this.#execution.isStopping) {
        this.#execution.abort(new Error("the worker is stopping"));
        return null;
      }
      const record = JSON.stringify(describeError(error));
      const isFinal = isHopeless(error) || attempt + 1 >= policy.attempts;
      if (isFinal)
        return { entry: { op, attempt, output: null, error: record, tookMs: tookMs() }, value: null };
      const delayMs = backoffMs(policy, attempt, Math.random());
      return { entry: { op: "retry", kind: op, attempt: attempt + 1, error: record, delayMs }, value: null };
    }
  }

  /** What the function of a step promised, or `StepTimeout` once `maxStepDuration` has passed. */
  #withinTime(returned: unknown, signal: StepSignal): unknown {
    const { maxStepMs } = this.#around;
    if (maxStepMs === null || !(returned instanceof Promise)) return returned;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const error = new StepTimeout(`the step ran longer than ${maxStepMs} ms (maxStepDuration)`);
        signal.abort(error);
        reject(error);
      }, maxStepMs);
      void returned.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  /** The step will be tried again: in place if that is soon, else the run need not stay for it. */
  #rest(call: StepCall, pending: Extract<RecordVerdict, { kind: "pending" }>): void {
    call.attempt++;
    call.question = { op: "due" };
    this.#wait(call, pending);
  }

  /** Asks the database about a wait. */
  async #ask(call: StepCall): Promise<void> {
    call.state = "asking";
    clearTimeout(call.timer);
    call.timer = undefined;
    const verdict = await this.#record(call, call.question, null);
    if (verdict?.kind !== "pending") return;
    if (call.question.op === "invoke" && call.childId === null)
      this.#around.hub.nudge(call.question.child.queue);
    this.#wait(call, verdict);
  }

  /** The database knows of this wait: until when, or for which child. */
  #wait(
    call: StepCall,
    {
      dueMs,
      dueAt,
      childId,
      inboxSeq,
    }: Pick<Extract<RecordVerdict, { kind: "pending" }>, "dueMs" | "dueAt" | "childId" | "inboxSeq">,
  ): void {
    call.dueAt = dueAt;
    call.dueAtMs = dueMs === null ? null : performance.now() + dueMs;
    call.childId = childId;
    call.triedSeq = inboxSeq;
    if (call.work !== null && dueMs !== null && dueMs <= 0) {
      void this.#attempt(call, call.work);
      return;
    }
    if (call.work !== null && dueMs !== null && dueMs < restMs) {
      call.state = "running";
      this.#startTimer(call);
      return;
    }
    call.state = "waiting";
    if (isForSignal(call) && this.#inboxSeq > inboxSeq) void this.#ask(call);
    else this.#consider();
  }

  #startTimer(call: StepCall): void {
    if (call.dueAtMs === null || call.timer !== undefined) return;
    const leftMs = Math.ceil(call.dueAtMs - performance.now());
    call.timer = setTimeout(() => void this.#ask(call), Math.min(Math.max(leftMs, 0), longestTimerMs));
  }

  /** Records an outcome and has it delivered; gives the verdict if the body is to hear nothing of it yet. */
  async #record(call: StepCall, change: JournalChange, value: Json | null): Promise<RecordVerdict | null> {
    const { runId, claimId } = this.#execution;
    const seq = ++this.#seq;
    this.#deliveries.begin(seq);
    const verdict = await this.#around.recorder.write({
      runId,
      claimId,
      name: call.name,
      seq,
      inboxSeq: this.#inboxSeq,
      change,
    });
    if (this.#isDead) return null;
    switch (verdict.kind) {
      case "recorded": {
        const error =
          "error" in change && change.error !== null ? (JSON.parse(change.error) as ErrorRecord) : null;
        this.#deliver(call, seq, value, error);
        if (verdict.inboxSeq !== null) this.#hear(verdict.inboxSeq);
        return null;
      }
      case "done":
        this.#deliver(call, seq, verdict.output, verdict.error);
        return null;
      case "pending":
        this.#deliveries.giveUp(seq);
        this.#inboxSeq = Math.max(this.#inboxSeq, verdict.inboxSeq);
        return verdict;
      case "stale":
        this.#execution.abort(new Error("the claim on this run was lost"));
        return null;
      case "failed": {
        this.#deliveries.giveUp(seq);
        const refused = new InvalidOutcome(`the database refused it (${verdict.code}): ${verdict.message}`);
        if (change.op !== "run" && change.op !== "transaction") {
          this.refuse(call, refused);
          return null;
        }
        const error = JSON.stringify(describeError(refused));
        return this.#record(call, { ...change, output: null, error }, null);
      }
      case "busy":
        throw new Error("the flusher answered busy");
    }
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
    const { size } = this.#calls;
    const doings = this.#doings;
    onNextTurn(() => {
      this.#isConsidering = false;
      if (this.#isDead) return;
      if (doings !== this.#doings || size !== this.#calls.size) this.#consider();
      else this.#decide();
    });
  }

  #decide(): void {
    if (!this.#deliveries.isIdle) return;
    const calls = [...this.#calls.values()];
    if (calls.some(({ state }) => state === "asking")) return;
    if (calls.some(({ state }) => state === "running")) {
      const waiting = calls.filter(({ state }) => state === "waiting");
      for (const call of waiting) this.#startTimer(call);
      if (waiting.some(isForSignal)) {
        this.#around.watcher.watch(this.#execution.runId, (inboxSeq) => this.#hear(inboxSeq));
      }
      return;
    }
    if (calls.some(({ state }) => state === "held")) {
      this.#execution.interruptToStop();
      this.#execution.abort(new Error("the worker is stopping"));
      return;
    }
    if (calls.length > 0) this.#die(suspension(calls));
  }

  #unfinished(): string[] {
    return [...this.#calls.values()].filter(({ state }) => state === "running").map(({ name }) => name);
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
    if (this.#running > 0) this.#execution.interrupt(new Error("the workflow has ended"));
    this.#end(end);
  }

  #kill(): void {
    this.#isDead = true;
    this.#execution.onAbort = undefined;
    this.#around.watcher.forget(this.#execution.runId);
    this.#around.recorder.drop(this.#execution.runId);
    this.#deliveries.clear();
    for (const { timer } of this.#calls.values()) clearTimeout(timer);
    this.#calls.clear();
  }

  #checkName(given: unknown): string {
    const name = checkStepName(given);
    if (this.#names.size === this.#names.add(name).size) {
      throw new InvalidOption(
        `step "${name}" was called before in this run: each name may be used once. In a loop, put the index into it, such ` +
          `as \`${name}-\${index}\``,
      );
    }
    return name;
  }
}

const isForSignal = ({ kind }: StepCall): boolean => kind === "wait" || kind === "invoke";

/** Errors that no further attempt would mend. */
function isHopeless(error: unknown): boolean {
  return (
    error instanceof NonRetryable || error instanceof NotSerializable || error instanceof PayloadTooLarge
  );
}

/** What the run waits for, when all its outstanding steps do. */
function suspension(calls: readonly StepCall[]): BodyEnd {
  const names = new Set<string>();
  const matches = new Map<string, string | null>();
  for (const { question, childId } of calls) {
    if (childId !== null) names.add(`~${childId}`);
    if (question.op !== "wait") continue;
    const { event, match } = question;
    // Two waits for one event that ask for different things: any of them wakes the run.
    matches.set(event, names.has(event) && matches.get(event) !== match ? null : match);
    names.add(event);
  }
  const timed = calls.filter(({ dueAtMs }) => dueAtMs !== null);
  const first = timed.toSorted((one, other) => Date.parse(one.dueAt!) - Date.parse(other.dueAt!))[0];
  const tried = calls.filter(isForSignal).map(({ triedSeq }) => triedSeq);
  return {
    kind: "suspended",
    dueMs: first === undefined ? null : Math.max(0, first.dueAtMs! - performance.now()),
    transition: {
      kind: "suspend",
      names: [...names],
      matches: Object.fromEntries(
        [...matches].filter((entry): entry is [string, string] => entry[1] !== null),
      ),
      after: tried.length === 0 ? 0 : Math.min(...tried),
      dueAt: first?.dueAt ?? null,
      steps: calls.slice(0, 20).map(({ name }) => name),
    },
  };
}

function changedKind(name: string, recorded: StepKind, called: StepKind): NondeterministicWorkflow {
  const verb = {
    run: "step.run",
    sleep: "step.sleep",
    wait: "step.waitForEvent",
    invoke: "step.invoke",
    transaction: "step.transaction",
  };
  return new NondeterministicWorkflow(
    `step "${name}" is recorded as ${verb[recorded]}, but the body calls it as ${verb[called]}: the code was changed while this ` +
      "run was under way, or depends on chance or the time. Give the changed step another name, or the workflow a new version",
  );
}

/** The arguments of a sleep. */
export function sleepQuestion(until: unknown, of: string): JournalChange {
  if (until instanceof Date) {
    if (Number.isNaN(until.getTime())) throw new InvalidOption(`the time of ${of} is an invalid Date`);
    return { op: "sleep", delayMs: null, at: until };
  }
  if (until === undefined) {
    throw new InvalidOption(
      `${of} has no time: step.sleep takes a name and a time, such as step.sleep("pause", "5m")`,
    );
  }
  return { op: "sleep", delayMs: toMilliseconds(until, `the time of ${of}`), at: null };
}
