/** The two things that are written for many runs at once: the outcomes of runs, and the journals of workflows. Made by the worker. */

import type { Logger } from "../values/logger.js";
import type { JournalChange, JournalEntry, RecordVerdict } from "../store/journal.js";
import type { Claimable, Commit, Transition, Verdict, WorkerStore } from "../store/store.js";
import type { Emitter } from "../observe/events.js";
import { Flusher } from "../timing/flusher.js";

export interface CommitEvents {
  /** A commit has made other runs claimable: parents of ended children, the next in line for a key. */
  onClaimable(claimable: readonly Claimable[]): void;
  /** A run was handed over by a commit that nobody waits for any more. */
  onOrphan(orphan: { readonly runId: string; readonly claimId: string }): void;
}

type IsOutage = (error: unknown) => boolean;

export function commitFlusher(
  store: Pick<WorkerStore, "commit">,
  logger: Logger,
  isOutage: IsOutage,
  events: CommitEvents,
  emitter: Emitter,
): Flusher<Commit, Verdict> {
  return new Flusher<Commit, Verdict>({
    logger,
    isOutage,
    what: "commit",
    stale: { kind: "stale" },
    send: async (commits, options) => {
      const { verdicts, claimable } = await timed(emitter, "commit", commits, () =>
        store.commit(commits, options),
      );
      if (claimable.length > 0) events.onClaimable(claimable);
      return verdicts;
    },
    sizeOf: ({ transition }) => sizeOfTransition(transition),
    onLate: ({ next }, verdict) => {
      if (verdict.kind !== "committed" || verdict.handed === null) return;
      events.onOrphan({ runId: verdict.handed.runId, claimId: next!.claimId });
    },
  });
}

export function recordFlusher(
  store: Pick<WorkerStore, "record">,
  logger: Logger,
  isOutage: IsOutage,
  emitter: Emitter,
): Flusher<JournalEntry, RecordVerdict> {
  return new Flusher<JournalEntry, RecordVerdict>({
    logger,
    isOutage,
    what: "record",
    stale: { kind: "stale" },
    send: (entries, options) => timed(emitter, "record", entries, () => store.record(entries, options)),
    sizeOf: ({ change }) => sizeOfChange(change),
  });
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
