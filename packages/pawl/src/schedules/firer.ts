/**
 * Fires schedules that are due. Workers straight to Postgres and servers run it, as many as there
 * are: the database lets one of them fire each tick (SQL `fire_schedules`). It sleeps until the next
 * due time that the database told it, and asks once a second for schedules that other processes
 * have set. Only the database's clock decides; a timer here only says when to ask. An outage delays
 * it, and `catchUp` decides about the ticks that passed.
 */

import type { Hub } from "../local/hub.js";
import type { Emitter } from "../observe/events.js";
import type { FiredSchedule, ScheduleStore } from "../store/schedule-store.js";
import { type Polled, PollLoop } from "../timing/poll.js";
import type { Logger } from "../values/logger.js";
import { type PlannedFiring, planFiring } from "./plan.js";

const idleMs = 1_000;
/** After a poll that could fire nothing, although something is due. */
const blockedMs = 100;
/** How many schedules, and how many runs, one call fires. */
const maxSchedules = 100;
const maxRuns = 1_000;

export interface FirerOptions {
  readonly store: Pick<ScheduleStore, "dueSchedules" | "fireSchedules">;
  readonly hub: Hub;
  readonly events: Emitter;
  readonly logger: Logger;
  /** False: this process must not fire now. */
  readonly mayFire: () => boolean;
}

export class ScheduleFirer {
  readonly #options: FirerOptions;
  readonly #loop: PollLoop;
  readonly #forget: () => void;

  constructor(options: FirerOptions) {
    this.#options = options;
    this.#loop = new PollLoop({ shortestMs: idleMs, longestMs: idleMs }, () => this.#poll());
    this.#forget = options.hub.onScheduled(() => this.#loop.hint());
    this.#loop.start();
  }

  /** Resolves when no call is in flight. */
  async stop(): Promise<void> {
    this.#forget();
    await this.#loop.stop();
  }

  async #poll(): Promise<Polled> {
    if (!this.#options.mayFire()) return { kind: "pause", ms: idleMs };
    this.#loop.forgetDue();
    try {
      const { due, fired, dueMs } = await fireDue(this.#options);
      if (fired > 0) return { kind: "again" };
      return {
        kind: "drained",
        found: false,
        dueAtMs: dueMs === null ? null : performance.now() + dueMs,
        atMostMs: due > 0 ? blockedMs : null,
      };
    } catch (error) {
      this.#options.logger.warn({ err: error }, "pawl: schedules cannot be fired, trying again");
      return { kind: "failed" };
    }
  }
}

/** One round: how many schedules were due, how many went on, and else when the next one is due. */
export async function fireDue(
  options: Omit<FirerOptions, "mayFire">,
): Promise<{ readonly due: number; readonly fired: number; readonly dueMs: number | null }> {
  const { store, logger } = options;
  const { now, due, dueMs } = await store.dueSchedules(maxSchedules);
  const plans: PlannedFiring[] = [];
  for (const schedule of due) {
    try {
      plans.push(planFiring(schedule, now));
    } catch (error) {
      logger.error({ err: error, schedule: schedule.name }, "pawl: this process cannot compute a schedule");
    }
  }
  let fired = 0;
  for (const batch of batchesOf(plans)) {
    const answers = await store.fireSchedules(batch);
    for (const [index, plan] of batch.entries()) {
      const answer = answers[index] ?? { verdict: "gone" };
      if (isFired(answer)) fired++;
      announce(plan, answer, options);
    }
  }
  return { due: due.length, fired, dueMs };
}

/** Its next tick has moved. */
function isFired({ verdict }: FiredSchedule): boolean {
  return verdict === "fired" || verdict === "skipped" || verdict === "failed";
}

function* batchesOf(plans: readonly PlannedFiring[]): Generator<PlannedFiring[]> {
  let batch: PlannedFiring[] = [];
  let runs = 0;
  for (const plan of plans) {
    if (batch.length > 0 && runs + plan.ticks.length > maxRuns) {
      yield batch;
      [batch, runs] = [[], 0];
    }
    batch.push(plan);
    runs += plan.ticks.length;
  }
  if (batch.length > 0) yield batch;
}

/** Logs, events and hints that follow from a firing. */
function announce(
  { name, ticks, next, isCut, lateMs }: PlannedFiring,
  answer: FiredSchedule,
  { hub, events, logger }: Omit<FirerOptions, "mayFire">,
): void {
  switch (answer.verdict) {
    case "gone":
    case "busy":
      return;
    case "failed":
    case "error": {
      const { code, message, verdict } = answer;
      const then = verdict === "failed" ? `it tries again at ${next.toISOString()}` : "trying again";
      logger.error({ schedule: name, code, message }, `pawl: a schedule could not start its run, ${then}`);
      if (verdict === "failed") events.emit("schedule.failed", { schedule: name, code, message });
      return;
    }
    case "skipped":
      for (const at of ticks) events.emit("schedule.skipped", { schedule: name, at });
      return;
    case "fired": {
      const { definition, version, queue, runs, cancelled, lost, claimable } = answer;
      if (isCut) {
        const upTo = ticks.at(-1)?.toISOString();
        logger.warn(
          { schedule: name, caughtUp: ticks.length, upTo },
          "pawl: a schedule missed more ticks than it catches up; start the others with schedules.backfill",
        );
      }
      for (const { runId, name: of } of cancelled) {
        hub.cancel(runId, `the schedule ${name} starts its next run`);
        events.emit("run.completed", { runId, name: of, status: "cancelled", code: null, durationMs: null });
      }
      for (const one of lost) events.emit("run.unique_lost", one);
      hub.claimable(claimable);
      for (const { at, runId, created } of runs) {
        if (!created) continue;
        events.emit("run.started", { runId, name: definition, version, parentId: null });
        events.emit("schedule.fired", { schedule: name, runId, name: definition, at, lateMs });
      }
      if (runs.length > 0) hub.hint(queue);
    }
  }
}
