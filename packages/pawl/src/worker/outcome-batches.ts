/**
 * The two batchers of a worker: one writes the outcomes of runs (SQL `commit`), the other the
 * journals of workflows (SQL `record`). Made by the worker.
 */

import type { Emitter } from "../observe/events.js";
import { isUnreachable } from "../store/errors.js";
import type { JournalChange, JournalEntry } from "../store/journal.js";
import type { Claimable, Commit, Transition, WorkerStore } from "../store/store.js";
import type { CommitVerdict, JournalVerdict } from "../run/worker-services.js";
import { Batcher, type Guarded } from "../timing/batch.js";
import type { Logger } from "../values/logger.js";
import type { HeldClaim } from "./release.js";

/** Calls in flight at once. */
const lanes = 2;
/** The size of an entry without its state, result or output. */
const entryBytes = 100;

export interface CommitEvents {
  /** A commit made other runs claimable: parents of ended children, the next in line for a key. */
  onClaimable(claimable: readonly Claimable[]): void;
  /** A dropped commit was written after all, and claimed a run that nobody executes. */
  onOrphan(orphan: HeldClaim): void;
}

export function commitBatcher(
  store: Pick<WorkerStore, "commit">,
  logger: Logger,
  events: CommitEvents,
  emitter: Emitter,
): Batcher<Commit, CommitVerdict> {
  return new Batcher<Commit, CommitVerdict>({
    ...errorKinds,
    lanes,
    send: async (commits, { isAlone }) => {
      const { verdicts, claimable } = await timed(emitter, "commit", commits, () =>
        store.commit(commits, { patient: !isAlone }),
      );
      if (claimable.length > 0) events.onClaimable(claimable);
      return verdicts;
    },
    sizeOf: ({ transition }) => entryBytes + sizeOfTransition(transition),
    guarded: {
      ...byRun(logger, "commit"),
      onLate: ({ next }, verdict) => {
        if (verdict.kind !== "committed" || verdict.handed === null) return;
        events.onOrphan({ runId: verdict.handed.runId, claimId: next!.claimId });
      },
    },
  });
}

export function journalBatcher(
  store: Pick<WorkerStore, "record">,
  logger: Logger,
  emitter: Emitter,
): Batcher<JournalEntry, JournalVerdict> {
  return new Batcher<JournalEntry, JournalVerdict>({
    ...errorKinds,
    lanes,
    send: (entries, { isAlone }) =>
      timed(emitter, "record", entries, () => store.record(entries, { patient: !isAlone })),
    sizeOf: ({ change }) => entryBytes + sizeOfChange(change),
    guarded: byRun(logger, "record"),
  });
}

/** A locked row is an answer, not an error. */
const errorKinds = { isOutage: isUnreachable, isBusy: () => false };

/**
 * Items of one run in order, in calls that are sorted by id: every SQL function locks in that
 * order.
 */
function byRun(
  logger: Logger,
  what: "commit" | "record",
): Guarded<{ readonly runId: string }, { readonly kind: "stale" }> {
  return {
    keyOf: ({ runId }) => runId,
    compare: (one, other) => compareIds(one.runId, other.runId),
    dropped: { kind: "stale" },
    onFailure: (error, items) => logger.warn({ err: error, items }, `pawl: ${what} failed, trying again`),
  };
}

/** Ids are positive decimal numbers without leading zeros. */
function compareIds(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : one > other ? 1 : 0);
}

async function timed<Answer>(
  emitter: Emitter,
  what: "commit" | "record",
  { length: size }: readonly unknown[],
  send: () => Promise<Answer>,
): Promise<Answer> {
  const begunMs = performance.now();
  const answer = await send();
  if (emitter.hears("flush")) emitter.emit("flush", { what, size, durationMs: performance.now() - begunMs });
  return answer;
}

function sizeOfTransition(transition: Transition): number {
  const state = "state" in transition ? (transition.state?.length ?? 0) : 0;
  const result = "result" in transition ? transition.result.length : 0;
  let children = 0;
  if (transition.kind === "spawn")
    for (const child of transition.children) children += 300 + child.input.length;
  return state + result + children;
}

function sizeOfChange(change: JournalChange): number {
  if (change.op === "invoke") return 300 + change.child.input.length;
  return "output" in change ? (change.output?.length ?? 0) : 0;
}
