/**
 * The inbox of a claimed run as its steps see it: its signals, which of them it awaited, whether
 * the wait timed out, and the children of the last spawn. A small inbox comes with the claim.
 * Otherwise the worker reads it before the first step. After a step that kept the claim, its
 * signals are consumed and only new ones are read. Owned by the progress of the execution.
 */

import type { ChildRun } from "../define/context.js";
import type { ErrorRecord } from "../values/error-record.js";
import { fromJson } from "../values/json.js";
import { statusOf } from "../values/phase.js";
import type { ReceivedSignal } from "../define/signal.js";
import type { ClaimedRun, StoredChild, StoredSignal, WorkerStore } from "../store/store.js";

type Source = Pick<WorkerStore, "inbox" | "children">;

const none: readonly number[] = [];

export class Inbox {
  readonly #runId: string;
  #seq: number;
  #timedOut: boolean;
  #signals: readonly StoredSignal[];
  #children: readonly StoredChild[] = [];
  /**
   * Signals and children that are still to be read: signals after this seq, and how many children.
   */
  #missing: { inboxFrom: number; children: number } | null;

  constructor({ runId, inboxSeq, inbox, timedOut, children }: ClaimedRun) {
    this.#runId = runId;
    this.#seq = inboxSeq;
    this.#timedOut = timedOut;
    this.#signals = inbox ?? [];
    this.#missing =
      inbox === null || children
        ? { inboxFrom: inbox === null ? 0 : inboxSeq, children: children ?? 0 }
        : null;
  }

  /** The last delivered signal that this claim knows of. */
  get seq(): number {
    return this.#seq;
  }

  /** The wait that led to this step timed out. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Whether something must be read before the next step. */
  get isIncomplete(): boolean {
    return this.#missing !== null;
  }

  /** Reads the rest. If it throws, it can be called again. */
  async load(source: Source): Promise<void> {
    if (this.#missing === null) return;
    const { inboxFrom, children } = this.#missing;
    const signals: StoredSignal[] = [];
    for (let after = inboxFrom; after < this.#seq;) {
      const page = await source.inbox(this.#runId, { after, upTo: this.#seq });
      signals.push(...page);
      after = page.at(-1)?.seq ?? this.#seq;
    }
    this.#children = await readChildren(source, this.#runId, children);
    this.#signals = inboxFrom === 0 ? signals : [...this.#signals, ...signals];
    this.#missing = null;
  }

  /**
   * A step has kept the claim: its awaited signals are consumed, and the inbox goes up to
   * `inboxSeq`.
   */
  advance(consumed: readonly number[], inboxSeq: number | null): void {
    if (consumed.length > 0) {
      const gone = new Set(consumed);
      this.#signals = this.#signals.filter((signal) => !gone.has(signal.seq));
    }
    this.#timedOut = false;
    this.#children = [];
    if (inboxSeq === null || inboxSeq === this.#seq) return;
    this.#missing = { inboxFrom: this.#seq, children: 0 };
    this.#seq = inboxSeq;
  }

  /** The seqs of the awaited signals. */
  get awaitedSeqs(): readonly number[] {
    if (this.#signals.length === 0) return none;
    return this.#signals.filter(({ matched }) => matched).map(({ seq }) => seq);
  }

  /** The awaited signals, oldest first; a copy, since the step may change it. */
  awaited(): ReceivedSignal[] {
    return this.#signals.filter(({ matched }) => matched).map(received);
  }

  /** All signals, oldest first; a copy. */
  signals(): ReceivedSignal[] {
    return this.#signals.map(received);
  }

  /** The children of the spawn that led to this step, in order. */
  children(): ChildRun[] {
    return this.#children.map(({ runId, name, phase, result, error, created }) => ({
      runId,
      name,
      status: statusOf(phase),
      output: result === null ? null : fromJson(result),
      error: error === null ? null : (JSON.parse(error) as ErrorRecord),
      created,
    }));
  }
}

async function readChildren(source: Source, runId: string, count: number): Promise<StoredChild[]> {
  const children: StoredChild[] = [];
  while (children.length < count) {
    const page = await source.children(runId, children.at(-1)?.position ?? -1);
    if (page.length === 0) break;
    children.push(...page);
  }
  return children;
}

function received({ name, payload, receivedAt }: StoredSignal): ReceivedSignal {
  return { name, payload: structuredClone(payload), receivedAt };
}
