/**
 * What follows from the commits of workers elsewhere, told to those who wait in this process: who waits for the end of a run, or for
 * work. Hints only, like those of a worker in this process (see `run/commit.ts` of the library).
 */

import type { Commit, Hub, JournalEntry, RecordVerdict, Verdict } from "pawl/engine";

export function announceCommits(hub: Hub, commits: readonly Commit[], verdicts: readonly Verdict[]): void {
  for (const [index, commit] of commits.entries()) {
    const kind = verdicts[index]?.kind;
    if (kind === "committed" || kind === "already") announceCommit(hub, commit);
  }
}

function announceCommit(hub: Hub, { runId, queue, parentId, transition }: Commit): void {
  const expect = (delayMs: number): void => {
    if (queue !== undefined) hub.expect(queue, delayMs);
  };
  switch (transition.kind) {
    case "keep":
      return;
    case "next":
      expect(0);
      return;
    case "retry":
      expect(transition.delayMs);
      return;
    case "await":
      if (transition.delayMs !== null) expect(transition.delayMs);
      return;
    case "suspend":
      // By the clock of this machine, which may differ from the database's: a look too early only finds when it is due.
      if (transition.dueAt !== null) expect(Math.max(0, Date.parse(transition.dueAt) - Date.now()));
      return;
    case "spawn":
      for (const child of new Set(transition.children.map((one) => one.queue))) hub.nudge(child);
      return;
    case "done":
      if (parentId !== null) hub.delivered(parentId);
      hub.announce({ runId, phase: "done", result: transition.result, error: null });
      return;
    case "stop":
      if (parentId !== null) hub.delivered(parentId);
      hub.announce({ runId, phase: "failed", result: null, error: transition.error });
  }
}

/** Runs that workflows have invoked are new work. */
export function announceRecords(
  hub: Hub,
  entries: readonly JournalEntry[],
  verdicts: readonly RecordVerdict[],
): void {
  for (const [index, { change }] of entries.entries()) {
    if (change.op === "invoke" && verdicts[index]?.kind === "pending") hub.nudge(change.child.queue);
  }
}
