/**
 * Lets a scene come to rest, as workers would: dead ones are reaped, keys put right, held claims answered, everything claimable
 * claimed. A run's first step waits for the signal `go`; the step it wakes consumes what it was shown, and ends the run if
 * nothing came meanwhile. Only a run that waits with an empty inbox is sent another signal, so whoever was woken too little stays
 * behind (`laws.ts` finds it).
 */

import { expect } from "vitest";
import type { Transition, Verdict } from "../../packages/pawl/dist/store/store.js";
import { aCommit, done, park } from "../support/store.js";
import type { Connection } from "./connections.js";
import { type Held, matchedBy, newClaimId, type Scene } from "./scene.js";

const maxRounds = 30;

export async function drain(scene: Scene, on: Connection): Promise<void> {
  const paused = await on.query<{ id: string }>(
    "select r.id from runs r where r.queue = $1 and (r.hold & 16) <> 0",
    [scene.queue],
  );
  const resumed = await on.store.pausing.resumeRuns(paused.map(({ id }) => id));
  expect(resumed.runs.filter(({ verdict }) => verdict !== "changed")).toEqual([]);
  for (let round = 0; round < maxRounds; round++) {
    scene.reaped += await on.store.reap(100);
    await on.store.repairKeys(null, 100);
    await on.query("select * from repair_slots(null, 100)", []);
    for (const claim of scene.held.values()) await settle(scene, on, claim);
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
    scene.hold(runs, claimId);
    if (runs.length > 0) continue;
    const waiting = await on.query<{ id: string }>(
      `select r.id from runs r where r.queue = $1 and r.status = 'awaiting_signal'
       and not exists (select 1 from signals s where s.run_id = r.id and s.consumed_at is null)`,
      [scene.queue],
    );
    if (waiting.length === 0) break;
    for (const { id } of waiting) {
      const go = { runId: id, name: "go", payload: "{}", dedupKey: null };
      expect((await on.store.signal([go], { patient: true })).verdicts).toEqual(["delivered"]);
      scene.delivered.push(id);
    }
  }
  await expectZombiesStale(scene, on);
}

/** A worker answers for a run it holds, and lets go of one that is no longer its own. */
async function settle(scene: Scene, on: Connection, claim: Held): Promise<void> {
  scene.held.delete(`${claim.claimId}/${claim.runId}`);
  const end = done(JSON.stringify(claim.claimId));
  let verdict: Verdict;
  if (claim.step === null) verdict = await send(park("go"), 0);
  else if (claim.step === "gathered") verdict = await send(claim.inboxSeq === 0 ? end : park("go"), 0);
  else {
    verdict = await send({ kind: "keep", step: "woken", state: null, consumed: matchedBy(claim) }, 0);
    if (verdict.kind === "committed") verdict = await send(verdict.inboxSeq === null ? end : park("go"), 1);
  }
  if (verdict.kind === "stale") await on.store.release([claim]);
  else expect(verdict.kind, "of a worker that does as it should").toBe("committed");

  async function send(transition: Transition, turn: number): Promise<Verdict> {
    const { verdicts } = await on.store.commit([aCommit(claim, transition, turn)], { patient: true });
    scene.note(claim, transition, verdicts[0]!, turn);
    return verdicts[0]!;
  }
}

/** A worker that was taken for dead, or whose run went on without it, commits nothing. */
async function expectZombiesStale(scene: Scene, on: Connection): Promise<void> {
  for (const { claim } of scene.subjects) {
    if (scene.applied.some((applied) => applied.startsWith(`${claim.runId}/${claim.claimId}/`))) continue;
    const { verdicts } = await on.store.commit([aCommit(claim, done('"zombie"'))], { patient: true });
    expect(verdicts[0]!.kind, "a zombie's outcome").toBe("stale");
  }
}
