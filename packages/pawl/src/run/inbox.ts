/**
 * What comes to a run from outside, as the steps of one claim see it: its inbox, which of it was awaited, whether the wait
 * timed out, and the children of the last spawn. Small inboxes come along with the claim, the rest is read before the first
 * step. After a step that kept the claim, its signals are consumed and only what is new is read. Owned by the execution.
 */

import type { ChildRun } from "../define/context.js";
import type { ErrorRecord } from "../values/error-record.js";
import { fromJson } from "../values/json.js";
import { statusOf } from "../values/phase.js";
import type { ReceivedSignal } from "../define/signal.js";
import type { ClaimedRun, StoredChild, StoredSignal, WorkerStore } from "../store/store.js";

type Source = Pick<WorkerStore, "inbox" | "children">;

const none: readonly number[] = [];

export class Incoming {
  readonly #runId: string;
  /** The last signal delivered that this claim knows of. */
  inboxSeq: number;
  timedOut: boolean;
  #inbox: readonly StoredSignal[];
  #children: readonly StoredChild[] = [];
  /** What is still to be read: signals after this seq, and how many children. */
  #missing: { inboxFrom: number; children: number } | null;

  constructor({ runId, inboxSeq, inbox, timedOut, children }: ClaimedRun) {
    this.#runId = runId;
    this.inboxSeq = inboxSeq;
    this.timedOut = timedOut;
    this.#inbox = inbox ?? [];
    this.#missing =
      inbox === null || children
        ? { inboxFrom: inbox === null ? 0 : inboxSeq, children: children ?? 0 }
        : null;
  }

  /** Whether something must be read before the next step. */
  get isIncomplete(): boolean {
    return this.#missing !== null;
  }

  /** Reads what is missing. If it throws, it can be called again. */
  async load(source: Source): Promise<void> {
    if (this.#missing === null) return;
    const { inboxFrom, children } = this.#missing;
    const signals: StoredSignal[] = [];
    for (let after = inboxFrom; after < this.inboxSeq;) {
      const page = await source.inbox(this.#runId, { after, upTo: this.inboxSeq });
      signals.push(...page);
      after = page.at(-1)?.seq ?? this.inboxSeq;
    }
    this.#children = await readChildren(source, this.#runId, children);
    this.#inbox = inboxFrom === 0 ? signals : [...this.#inbox, ...signals];
    this.#missing = null;
  }

  /** A step has gone on with the claim kept: what it saw as awaited is consumed, and the inbox goes up to `inboxSeq`. */
  advance(consumed: readonly number[], inboxSeq: number | null): void {
    if (consumed.length > 0) {
      const gone = new Set(consumed);
      this.#inbox = this.#inbox.filter((signal) => !gone.has(signal.seq));
    }
    this.timedOut = false;
    this.#children = [];
    if (inboxSeq === null || inboxSeq === this.inboxSeq) return;
    this.#missing = { inboxFrom: this.inboxSeq, children: 0 };
    this.inboxSeq = inboxSeq;
  }

  /** The seqs of what was awaited. */
  get awaitedSeqs(): readonly number[] {
    if (this.#inbox.length === 0) return none;
    return this.#inbox.filter(({ matched }) => matched).map(({ seq }) => seq);
  }

  /** What was awaited, oldest first; a copy, since it is the step's to change. */
  awaited(): ReceivedSignal[] {
    return this.#inbox.filter(({ matched }) => matched).map(received);
  }

  /** Everything in the inbox, oldest first; a copy. */
  inbox(): ReceivedSignal[] {
    return this.#inbox.map(received);
  }

  /** The children of the spawn that led to this step, in order. */
  children(): ChildRun[] {
    return this.#children.map(({ runId, name, phase, result, error, created }) => ({
      runId,
      name,
      status: statusOf(phase),
      output: result === null ? null : fromJson(result),
      error: error === null ? null : (fromJson(error) as unknown as ErrorRecord),
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
