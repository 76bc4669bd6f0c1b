/**
 * The runs that a pair of operations meets, each brought into the phase that its operation needs, and a ledger of what the
 * operations were told: which claims workers hold, which outcomes were committed, which signals were delivered and
 * consumed. What the database holds in the end must agree with it (`laws.ts`). A scene has a queue of its own.
 */

import { expect } from "vitest";
import type { ClaimedRun, NewRun, Transition, Verdict } from "../../packages/pawl/dist/store/store.js";
import type { TestDatabase } from "../support/database.js";
import { claimOne, commit, done, park, register, start } from "../support/store.js";

/** `orphaned`: executing, and its worker is dead. `due`: waiting, past its deadline. `expired`: done, past its retention. */
export type Phase = "runnable" | "executing" | "orphaned" | "waiting" | "due" | "expired";

export type Held = ClaimedRun & { readonly claimId: string };

/** A run as an operation meets it. `claim`: by which a worker executes it, or one that was lost long ago. */
export interface Subject {
  readonly runId: string;
  readonly phase: Phase;
  readonly workerId: string;
  readonly claim: Held;
}

let count = 0;

export const newClaimId = (): string => String(9_000_000_000_000 + ++count);

export class Scene {
  readonly database: TestDatabase;
  readonly queue = `scene-${++count}`;
  readonly subjects: Subject[] = [];
  /** Claims of live workers, by claim and run. */
  readonly held = new Map<string, Held>();
  /** `run/claim/turn` of each outcome that was committed. */
  readonly applied: string[] = [];
  /** The claim whose outcome ended a run. */
  readonly ends = new Map<string, string>();
  /** The run of each signal that was delivered. */
  readonly delivered: string[] = [];
  /** `run/seq` of each signal that an outcome consumed. */
  readonly consumed: string[] = [];
  readonly cancelled = new Set<string>();
  reaped = 0;
  swept = 0;

  constructor(database: TestDatabase) {
    this.database = database;
  }

  async start(given: Partial<NewRun> = {}): Promise<string> {
    const [runId] = await start(this.database, { queue: this.queue, ...given });
    return runId!;
  }

  /** Brings a runnable run into a phase, in a queue of its own meanwhile. */
  async bring(
    runId: string,
    phase: Phase,
    { parentId = null as string | null, partitionKey = null as string | null } = {},
  ): Promise<Subject> {
    const { database } = this;
    const workerId = phase === "orphaned" ? `dead-${++count}` : "live";
    let claim = { runId, inboxSeq: 0, parentId, partitionKey, claimId: newClaimId() } as Held;
    if (phase === "orphaned") await register(database, workerId);
    if (phase !== "runnable") {
      const queue = `alone-${++count}`;
      await database.sql("update runs set queue = $2 where id = $1", [runId, queue]);
      const own = await claimOne(database, { queue, workerId, claimId: newClaimId() });
      if (phase === "executing") this.hold([own], own.claimId);
      if (phase === "executing" || phase === "orphaned") claim = own;
      else if (phase === "expired") {
        const end = done(JSON.stringify(own.claimId));
        this.note(own, end, await commit(database, own, end));
      } else {
        await commit(database, own, park("go", { timeoutMs: 3_600_000 }));
      }
      await database.sql("update runs set queue = $2 where id = $1", [runId, this.queue]);
    }
    const subject = { runId, phase, workerId, claim };
    this.subjects.push(subject);
    return subject;
  }

  /** Lets time pass: deadlines, retention and leases of dead workers end. */
  async age(): Promise<void> {
    const { sql } = this.database;
    for (const { runId, phase, workerId } of this.subjects) {
      if (phase === "due") {
        await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
      } else if (phase === "expired") {
        await sql("update runs set expires_at = clock_timestamp() where id = $1", [runId]);
      } else if (phase === "orphaned") {
        await sql("update workers set seen_at = seen_at - interval '2 hours' where id = $1", [workerId]);
      }
    }
  }

  /** Takes away what is left of it, so that the next scene is alone. */
  async clear(): Promise<void> {
    const { sql } = this.database;
    await sql("delete from signals s using runs r where r.queue = $1 and s.run_id = r.id", [this.queue]);
    await sql("delete from runs where queue = $1", [this.queue]);
    await sql("delete from workers where id <> 'live'");
  }

  /** A worker has got these runs. A wait ends by its timeout exactly if no signal for it was there. */
  hold(runs: readonly ClaimedRun[], claimId: string): void {
    for (const run of runs) {
      if (run.step === "woken") {
        expect(run.timedOut, "woken by a signal, or else by the timeout").toBe(matchedBy(run).length === 0);
      }
      this.held.set(`${claimId}/${run.runId}`, { ...run, claimId });
    }
  }

  /** An outcome was answered. */
  note({ runId, claimId }: Held, transition: Transition, verdict: Verdict, turn = 0): void {
    if (verdict.kind !== "committed") return;
    this.applied.push(`${runId}/${claimId}/${turn}`);
    if (transition.kind === "keep") {
      this.consumed.push(...transition.consumed.map((seq) => `${runId}/${seq}`));
      return;
    }
    this.held.delete(`${claimId}/${runId}`);
    if (transition.kind !== "done") return;
    expect(this.ends.has(runId), `run ${runId} has ended before`).toBe(false);
    this.ends.set(runId, claimId);
  }
}

/** The signals that a step sees as awaited. */
export function matchedBy(run: ClaimedRun): number[] {
  return (run.inbox ?? []).filter(({ matched }) => matched).map(({ seq }) => seq);
}
