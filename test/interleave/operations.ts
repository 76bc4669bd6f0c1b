/**
 * The operations of which every pair is interleaved. Each says in which phase it finds a run that it changes, makes its
 * call on a given connection, and answers what is to be noted once its transaction is committed and what must hold when all
 * is quiet. An operation that meets a run in another phase is one that came late: a zombie's commit, a second cancel.
 */

import { expect } from "vitest";
import type { Transition } from "../../packages/pawl/dist/store/store.js";
import { aCommit, done, isLockTimeout, park, spawn } from "../support/store.js";
import type { Connection } from "./connections.js";
import { newClaimId, type Phase, type Scene, type Subject } from "./scene.js";

export interface Answer {
  /** Nothing was written because of a lock: to be sent again. */
  readonly isBusy: boolean;
  /** The transaction is committed. */
  note(): void;
  /** What the answer promised; `status` is the run's in the end, undefined if it was swept. */
  holds(status: string | undefined): void;
}

interface Meeting {
  readonly on: Connection;
  readonly scene: Scene;
  readonly subject: Subject;
  /** false: sent again by the slow lane. */
  readonly patient: boolean;
}

export interface Operation {
  readonly name: string;
  readonly from: Phase;
  /** It answers although another transaction keeps its locks. */
  readonly neverWaits: boolean;
  call(meeting: Meeting): Promise<Answer>;
}

const answer = (given: Partial<Answer>): Answer => ({
  isBusy: false,
  note: () => {},
  holds: () => {},
  ...given,
});

const claimFrom = (name: string, from: Phase): Operation => ({
  name,
  from,
  neverWaits: true,
  call: async ({ on, scene }) => {
    const claimId = newClaimId();
    const { runs } = await on.store.claim({
      queue: scene.queue,
      limit: 10,
      names: ["counter"],
      versions: [1],
      floor: null,
      workerId: "live",
      claimId,
    });
    return answer({ note: () => scene.hold(runs, claimId) });
  },
});

const commitOf = (
  name: string,
  outcome: (subject: Subject, scene: Scene) => Transition,
  { handsOver = false, names = false } = {},
): Operation => ({
  name,
  from: "executing",
  neverWaits: true,
  call: async ({ on, scene, subject, patient }) => {
    const transition = outcome(subject, scene);
    const expected = names ? await nextOf(scene, subject) : null;
    const next = handsOver ? { workerId: "live", claimId: newClaimId(), expected } : null;
    const { verdicts } = await on.store.commit([{ ...aCommit(subject.claim, transition), next }], {
      patient,
    });
    const verdict = verdicts[0]!;
    return answer({
      isBusy: verdict.kind === "busy",
      note: () => {
        scene.note(subject.claim, transition, verdict);
        if (verdict.kind === "committed" && verdict.handed) scene.hold([verdict.handed], next!.claimId);
      },
      holds: () => {
        const { runId, claimId } = subject.claim;
        const isMine = subject.phase === "executing" || subject.phase === "orphaned";
        const isApplied = scene.applied.includes(`${runId}/${claimId}/0`);
        if (!isMine) expect(verdict.kind, "of a claim that is gone").toBe("stale");
        else if (verdict.kind === "already") expect(isApplied, "already applied").toBe(true);
        else if (verdict.kind === "stale") {
          expect(isApplied, "applied although stale").toBe(false);
          expect(scene.reaped > 0 || scene.cancelled.has(runId), "stale without a reason").toBe(true);
        } else expect(verdict.kind).toBe("committed");
      },
    });
  },
});

const claim = claimFrom("claim", "runnable");
const timeout = claimFrom("timeout", "due");
const end = ({ claim: { claimId } }: Subject): Transition => done(JSON.stringify(claimId));
const commit = commitOf("commit", end);
const parking = commitOf("park", () => park("go"));

const signal: Operation = {
  name: "signal",
  from: "waiting",
  neverWaits: false,
  call: async ({ on, scene, subject: { runId } }) => {
    const { verdicts } = await on.store.signal([{ runId, name: "go", payload: "{}", dedupKey: null }], {
      patient: true,
    });
    return answer({
      note: () => {
        if (verdicts[0] === "delivered") scene.delivered.push(runId);
      },
      holds: (status) => {
        if (verdicts[0] === "ended") expect(["done", "cancelled", undefined]).toContain(status);
        else if (verdicts[0] === "not_found") expect(status).toBeUndefined();
        else expect(verdicts[0]).toBe("delivered");
      },
    });
  },
};

const heartbeat: Operation = {
  name: "heartbeat",
  from: "executing",
  neverWaits: false,
  call: async ({ on, subject: { workerId, phase } }) => {
    const [row] = await on.query<{ alive: boolean }>("select * from beat($1, 0)", [workerId]);
    return answer({ holds: () => expect(row!.alive).toBe(phase !== "orphaned") });
  },
};

const reap: Operation = {
  name: "reap",
  from: "orphaned",
  neverWaits: true,
  call: async ({ on, scene }) => {
    const reaped = await on.store.reap(100);
    return answer({ note: () => (scene.reaped += reaped) });
  },
};

const cancel: Operation = {
  name: "cancel",
  from: "waiting",
  neverWaits: false,
  call: async ({ on, scene, subject: { runId } }) => {
    // A cancel waits 100 ms for a lock. A busy machine may take longer until the other one ends.
    const told = await on.store.cancel(runId, { reason: "enough", cascade: true }).catch((error: unknown) => {
      if (!isLockTimeout(error)) throw error;
      return null;
    });
    if (told === null) return answer({ isBusy: true });
    const { verdict, runIds } = told;
    return answer({
      note: () => {
        for (const id of runIds) scene.cancelled.add(id);
      },
      holds: (status) => {
        if (verdict === "ended") expect(["done", undefined]).toContain(status);
        else if (verdict === "not_found") expect(status).toBeUndefined();
        else expect(status).toBe("cancelled");
      },
    });
  },
};

const sweep: Operation = {
  name: "sweep",
  from: "expired",
  neverWaits: true,
  call: async ({ on, scene }) => {
    const { swept } = await on.store.sweep(100);
    return answer({ note: () => (scene.swept += swept) });
  },
};

/** Pauses the run; the drain resumes it. */
const pause: Operation = {
  name: "pause",
  from: "waiting",
  neverWaits: true,
  call: async ({ on, subject: { runId } }) => {
    const request = { by: "test", reason: null };
    const { verdict } = (await on.store.pausing.pauseRuns([runId], request)).runs[0]!;
    return answer({
      isBusy: verdict === "busy",
      holds: (status) => {
        if (verdict === "ended") expect(["done", "cancelled", undefined]).toContain(status);
        else if (verdict === "not_found") expect(status).toBeUndefined();
        else expect(["changed", "already"]).toContain(verdict);
      },
    });
  },
};

export const operations = {
  claim,
  commit,
  park: parking,
  signal,
  heartbeat,
  reap,
  cancel,
  timeout,
  sweep,
  pause,
};

/** Not one of these, but it makes the tree grow that a cancel goes down. */
export const spawning = commitOf("spawn", (_, { queue }) => spawn({ queue }, { queue }));

/** Commits, too, that claim the next run in line for their key at once, and that name the one that they expect there. */
export const handing = commitOf("commit with a hand-over", end, { handsOver: true });
export const naming = commitOf("commit that names the next", end, { handsOver: true, names: true });

/** Who is next in line for the key of a run, as far as can be seen. */
async function nextOf({ database }: Scene, { claim: { partitionKey } }: Subject): Promise<string | null> {
  const [next] = await database.sql<{ id: string }>(
    "select id from runs where partition_key = $1 and status = 'runnable' order by priority, eligible_at, id limit 1",
    [partitionKey],
  );
  return next?.id ?? null;
}
