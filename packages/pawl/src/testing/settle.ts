/**
 * Waits until nothing in a test's database can move unless time passes or a signal comes. What the database holds and what the workers of the
 * test do are looked at together: at rest is a moment at which no call of theirs is under way, no run that they could claim is due,
 * and all that they hold waits. Used by `test-pawl.ts`.
 */

import type { Pawl } from "../api/pawl.js";
import { NotDrained } from "./not-drained.js";
import type { PrivateDatabase } from "./private-database.js";
import type { TestWorkers } from "./test-workers.js";

/** How long a function may run beside a timer of its workflow until the clock is moved all the same. */
const besideMs = 200;
const lookMs = 20;
/** So many times the patience, if there is progress but no end of it. */
const patienceRounds = 20;
const maxExplained = 10;
/** So many times the steps of one run, all runs together may execute. */
const maxStepsOfAll = 100;

/** One look at the database, all of it of one moment. */
interface Look {
  /** The runs that are claimed, and whether steps of theirs wait for a time. */
  readonly held: readonly { readonly runId: string; readonly isTimed: boolean }[];
  /** The queues that have due runs which a living worker serves. */
  readonly due: readonly string[];
  /** Runs are set aside, because of their keys or because nobody served them, or are past their retention: something may be left to do. */
  readonly isLeft: boolean;
}

const lookSql = `
  select jsonb_build_object(
    'held', coalesce((
      select jsonb_agg(jsonb_build_object('runId', r.id::text, 'isTimed', exists (
        select from pawl.steps s where s.run_id = r.id and s.completed_at is null and s.due_at > c.at)))
      from pawl.runs r where r.locked_by is not null), '[]'),
    'due', to_jsonb(array(
      select distinct r.queue from pawl.runs r
      where r.status in ('runnable', 'awaiting_signal') and r.hold = 0 and r.eligible_at <= c.at and not exists (select from pawl.settings g where g.held)
        and exists (select from pawl.workers w where r.name || '@' || r.version = any (w.serves) and r.queue = any (w.queues)
          and w.seen_at + w.lease > clock_timestamp()))),
    'isLeft', exists (select from pawl.runs r where (r.hold & 3) <> 0 or r.expires_at <= c.at)) as answer
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
 * Resolves when nothing can move. With `passBeside`, a function that does not return is not waited for, if its workflow waits for a time beside
 * it: what is to happen first is a matter of the clock.
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
  workers.hint({ clockMoved });
  for (;;) {
    if (workers.isCrashed) await workers.revive();
    const calls = activity.calls;
    const isBusy = activity.inFlight > 0;
    const look = await database.ask<Look>(lookSql);
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
      // Something went on meanwhile: what was seen says nothing.
      if (activity.inFlight > 0) await activity.changed(lookMs);
      continue;
    }
    const isDue = look.due.some((queue) => workers.hasSlot(queue));
    const unrested = unrestedOf(look, workers, passBeside && nowMs - sinceMs >= besideMs);
    const isQuiet = !isDue && unrested.length === 0;
    if (isQuiet && (!look.isLeft || repairedAt === progress)) return;
    if (nowMs - sinceMs > patienceMs) {
      const problem =
        `nothing has happened for ${patienceMs} ms, and yet not all is at rest. ` +
        "A step that waits for something in the test must get it before, and one that takes longer needs testPawl({ patience })";
      throw await giveUp(pawl, unrested, problem);
    }
    if (repairedAt !== progress) {
      // Runs that were set aside, whose worker is dead, or that are too old: once, after whatever went on last.
      repairedAt = progress;
      await workers.repair();
    } else {
      await activity.changed(lookMs);
    }
    if (isDue) workers.hint({ clockMoved: false });
  }
}

/** The runs that do not only wait. */
function unrestedOf({ held }: Look, workers: TestWorkers, passBeside: boolean): string[] {
  const timed = new Set(passBeside ? held.filter(({ isTimed }) => isTimed).map(({ runId }) => runId) : []);
  const executing = workers.executing();
  const resting = new Set(executing.filter(({ isAtRest }) => isAtRest).map(({ runId }) => runId));
  const all = new Set([...held, ...executing].map(({ runId }) => runId));
  return [...all].filter((runId) => !resting.has(runId) && !timed.has(runId));
}

/** One run goes on and on, or all of them together do, as when each starts the next. */
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
    `there is no end of it: in ${lastedMs} ms ${steps.size} runs have executed ${all} steps, most of them ${counts}. ` +
      "A run comes to rest when it ends or waits for a time or a signal; if it only takes many steps, allow them by testPawl({ maxSteps })",
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
