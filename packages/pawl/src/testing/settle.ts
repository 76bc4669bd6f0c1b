/**
 * Waits until a test is at rest: nothing can happen unless time passes or a signal arrives. At rest
 * means: no call of a worker is in flight, no run that they could claim is due, and all runs that
 * they hold wait. Used by `test-pawl.ts`.
 */

import type { Pawl } from "../api/pawl.js";
import { NotDrained } from "./not-drained.js";
import type { PrivateDatabase } from "./private-database.js";
import type { TestWorkers } from "./test-workers.js";

/**
 * How long to wait for a function that runs beside a timer of its workflow, before the clock moves.
 */
const besideMs = 200;
const pollMs = 20;
/** With progress but without an end, give up after this many times the patience. */
const patienceRounds = 20;
const maxExplained = 10;
/** All runs together may execute this many times the steps of one run. */
const maxStepsOfAll = 100;

/** The state of the database at one moment. */
interface Snapshot {
  /** The claimed runs, and whether a step of each waits for a time, or the run has a deadline. */
  readonly held: readonly { readonly runId: string; readonly isTimed: boolean }[];
  /** The queues with due runs that a live worker serves and nobody has paused. */
  readonly due: readonly string[];
  /** Some runs are blocked, unserved, overdue or past retention, so a repair may find work. */
  readonly isLeft: boolean;
}

const snapshotSql = `
  select jsonb_build_object(
    'held', coalesce((
      select jsonb_agg(jsonb_build_object('runId', r.id::text, 'isTimed', exists (
        select from pawl.steps s where s.run_id = r.id and s.completed_at is null and s.due_at > c.at) or exists (
        select from pawl.extras x where x.run_id = r.id and x.deadline_at > c.at)))
      from pawl.runs r where r.locked_by is not null), '[]'),
    'due', to_jsonb(array(
      select distinct r.queue from pawl.runs r
      where r.status in ('runnable', 'awaiting_signal') and r.hold = 0 and r.eligible_at <= c.at and not exists (select from pawl.settings g where g.held)
        and not exists (select from pawl.pauses p
          where case when p.scope = 'queue' then p.name = r.queue else p.name = r.name and p.version in (0, r.version) end)
        and exists (select from pawl.workers w where r.name || '@' || r.version = any (w.serves) and r.queue = any (w.queues)
          and w.seen_at + w.lease > clock_timestamp()))),
    'isLeft', exists (select from pawl.runs r where (r.hold & 3) <> 0 or r.expires_at <= c.at)
      or exists (select from pawl.extras x where x.deadline_at <= c.at and not x.ended)) as answer
  from pawl_testing.clock c`;

export interface SettleOptions {
  readonly database: PrivateDatabase;
  readonly workers: TestWorkers;
  readonly pawl: Pick<Pawl, "why">;
  readonly patienceMs: number;
  /** How many steps one run may execute. */
  readonly maxSteps: number;
}

/**
 * Resolves when the test is at rest. With `passBeside`, it does not wait for a function whose
 * workflow also waits for a time: then the clock decides which happens first.
 */
export async function settle(
  { database, workers, pawl, patienceMs, maxSteps }: SettleOptions,
  { clockMoved, passBeside }: { clockMoved: boolean; passBeside: boolean },
): Promise<void> {
  const { activity } = workers;
  const beganMs = performance.now();
  let sinceMs = beganMs;
  let progress = activity.progress;
  let repairedAt = -1;
  activity.countSteps();
  await workers.revive();
  await workers.fireSchedules();
  workers.wake({ clockMoved });
  for (;;) {
    if (workers.isCrashed) await workers.revive();
    const calls = activity.calls;
    const isBusy = activity.inFlight > 0;
    const snapshot = await database.ask<Snapshot>(snapshotSql);
    const nowMs = performance.now();
    if (activity.progress !== progress) {
      ({ progress } = activity);
      sinceMs = nowMs;
    }
    const isTooMuch = isEndless(activity.steps, maxSteps);
    if (isTooMuch || nowMs - beganMs > patienceMs * patienceRounds) {
      const lastedMs = Math.round(nowMs - beganMs);
      throw await giveUpOnEndless(pawl, activity.steps, lastedMs);
    }
    if (isBusy || activity.calls !== calls || workers.isCrashed) {
      // Something happened meanwhile, so the snapshot is out of date.
      if (activity.inFlight > 0) await activity.changed(pollMs);
      continue;
    }
    const isDue = snapshot.due.some((queue) => workers.hasSlot(queue));
    const unrested = unrestedOf(snapshot, workers, passBeside && nowMs - sinceMs >= besideMs);
    const isQuiet = !isDue && unrested.length === 0;
    // No further run can join a batch now, so its wait is over.
    if (isQuiet && workers.hurryBatches()) continue;
    if (isQuiet && (!snapshot.isLeft || repairedAt === progress)) return;
    if (nowMs - sinceMs > patienceMs) {
      const problem =
        `no progress for ${patienceMs} ms, but these runs are not at rest. ` +
        "If a step waits for something from the test, provide it first; if it takes longer, raise testPawl({ patience })";
      throw await giveUp(pawl, unrested, problem);
    }
    if (repairedAt !== progress) {
      // Repairs once after the last progress: blocked runs, runs of dead workers, expired runs.
      repairedAt = progress;
      await workers.repair();
    } else {
      await activity.changed(pollMs);
    }
    if (isDue) workers.wake({ clockMoved: false });
  }
}

/** The runs that are not waiting. */
function unrestedOf({ held }: Snapshot, workers: TestWorkers, passBeside: boolean): string[] {
  const timed = new Set(passBeside ? held.filter(({ isTimed }) => isTimed).map(({ runId }) => runId) : []);
  const executing = workers.executing();
  const resting = new Set(executing.filter(({ isAtRest }) => isAtRest).map(({ runId }) => runId));
  const all = new Set([...held, ...executing].map(({ runId }) => runId));
  return [...all].filter((runId) => !resting.has(runId) && !timed.has(runId));
}

/**
 * Whether one run executes too many steps, or all runs together do, as when each starts the next.
 */
function isEndless(steps: ReadonlyMap<string, number>, maxSteps: number): boolean {
  let sum = 0;
  for (const count of steps.values()) {
    if (count > maxSteps) return true;
    sum += count;
  }
  return sum > maxSteps * maxStepsOfAll;
}

async function giveUpOnEndless(
  pawl: Pick<Pawl, "why">,
  steps: ReadonlyMap<string, number>,
  lastedMs: number,
): Promise<NotDrained> {
  const busiest = [...steps].toSorted(([, one], [, other]) => other - one).slice(0, maxExplained);
  const counts = busiest.map(([runId, count]) => `run ${runId}: ${count}`).join(", ");
  const all = [...steps.values()].reduce((sum, count) => sum + count, 0);
  return giveUp(
    pawl,
    busiest.map(([runId]) => runId),
    `the runs do not come to rest: in ${lastedMs} ms ${steps.size} runs have executed ${all} steps, most of them ${counts}. ` +
      "A run is at rest when it ends or waits for a time or a signal; if it needs this many steps, raise testPawl({ maxSteps })",
  );
}

async function giveUp(
  pawl: Pick<Pawl, "why">,
  runIds: readonly string[],
  problem: string,
): Promise<NotDrained> {
  const reasons = await Promise.all(runIds.slice(0, maxExplained).map((runId) => pawl.why(runId)));
  return new NotDrained(problem, reasons);
}
