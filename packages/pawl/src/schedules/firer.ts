/**
 * Fires schedules that are due. Workers straight to Postgres and servers run it, as many as there
 * are: the database lets one of them fire each tick (SQL `fire_schedules`). It sleeps until the next
 * due time that the database told it, and learns once a second about schedules that other processes
 * have set: from an empty claim, or by asking. Only the database's clock decides; a timer here only says when to ask. An outage delays
 * it, and `catchUp` decides about the ticks that passed.
 */

import type { Hub } from "../local/hub.js";
import type { Emitter } from "../observe/events.js";
import type { FiredSchedule, ScheduleStore } from "../store/schedule-store.js";
import { type Polled, PollLoop } from "../timing/poll.js";
import type { Logger } from "../values/logger.js";
import { type PlannedFiring, planFiring } from "./plan.js";

const idleMs = 1_000;
/** A claim told the next due time so long ago at most: there is no need to ask. */
const freshMs = 1_500;
/** After a poll that could fire nothing, although something is due; or a whole line is. */
const blockedMs = 100;
const crowdedMs = 10;
/** A schedule that stays due because of an error is logged so often. */
const complainMs = 60_000;
/** How many schedules, and how many runs, one call fires. */
const maxSchedules = 100;
const maxRuns = 1_000;
/** If others fire the first schedules of a long line, begin behind up to so many. */
const maxSkipped = 1_000;

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
  #skip = 0;
  /** When the next schedule is due, as far as it knows; 0: it must ask. */
  #dueAtMs = 0;
  /** When it asked for that last, and when a claim did. */
  #askedMs = Number.NEGATIVE_INFINITY;
  #knownMs = Number.NEGATIVE_INFINITY;
  /** When the errors of schedules that stay due were logged. */
  readonly #complaints = new Map<string, number>();

  constructor(options: FirerOptions) {
    this.#options = options;
    this.#loop = new PollLoop({ shortestMs: idleMs, longestMs: idleMs }, (isHinted) => this.#poll(isHinted));
    this.#forget = options.hub.onScheduled(() => this.#loop.hint());
    this.#loop.start();
  }

  /** A claim that was sent at `askedMs` found when the next schedule is due; null: there is none. */
  learn(dueAtMs: number | null, askedMs: number): void {
    if (askedMs < this.#askedMs) return;
    this.#knownMs = askedMs;
    this.#dueAtMs = dueAtMs ?? Number.POSITIVE_INFINITY;
    if (dueAtMs !== null) this.#loop.expectAt(dueAtMs);
  }

  /** Resolves when no call is in flight. */
  async stop(): Promise<void> {
    this.#forget();
    await this.#loop.stop();
  }

  async #poll(isHinted: boolean): Promise<Polled> {
    if (!this.#options.mayFire()) return { kind: "pause", ms: idleMs };
    const askedMs = performance.now();
    if (!isHinted && this.#dueAtMs > askedMs && this.#knownMs + freshMs > askedMs) {
      return { kind: "drained", found: false, dueAtMs: null };
    }
    this.#loop.forgetDue();
    this.#askedMs = askedMs;
    this.#dueAtMs = 0;
    try {
      const { due, fired, dueMs } = await fireDue(this.#options, {
        skip: this.#skip,
        complain: (schedule, error) => this.#complain(schedule, error),
      });
      const isBlocked = due > 0 || this.#skip > 0;
      // Counted from when the database was asked, so that the way back delays no tick.
      if (!isBlocked) this.#dueAtMs = dueMs === null ? Number.POSITIVE_INFINITY : askedMs + dueMs;
      this.#skip = due === maxSchedules && fired === 0 ? Math.floor(Math.random() * maxSkipped) : 0;
      if (fired > 0) return { kind: "again" };
      return {
        kind: "drained",
        found: false,
        dueAtMs: dueMs === null ? null : this.#dueAtMs,
        atMostMs: this.#skip > 0 ? crowdedMs : isBlocked ? blockedMs : null,
      };
    } catch (error) {
      this.#options.logger.warn({ err: error }, "pawl: schedules cannot be fired, trying again");
      return { kind: "failed" };
    }
  }

  #complain(schedule: string, error: unknown): void {
    const nowMs = performance.now();
    const loggedMs = this.#complaints.get(schedule);
    if (loggedMs !== undefined && nowMs - loggedMs < complainMs) return;
    if (this.#complaints.size >= maxSkipped) this.#complaints.clear();
    this.#complaints.set(schedule, nowMs);
    this.#options.logger.error({ err: error, schedule }, "pawl: a schedule cannot be fired, trying again");
  }
}

interface Round {
  readonly skip: number;
  /** This schedule stays due, because of this error. */
  readonly complain: (schedule: string, error: unknown) => void;
}

/** One round: how many schedules were due, how many went on, and else when the next one is due. */
export async function fireDue(
  options: Omit<FirerOptions, "mayFire">,
  { skip, complain }: Round,
): Promise<{ readonly due: number; readonly fired: number; readonly dueMs: number | null }> {
  const { store } = options;
  const { now, due, dueMs } = await store.dueSchedules(maxSchedules, skip);
  const plans: PlannedFiring[] = [];
  for (const schedule of due) {
    try {
      plans.push(planFiring(schedule, now));
    } catch (error) {
      complain(schedule.name, error);
    }
  }
  let fired = 0;
  for (const batch of batchesOf(plans)) {
    const answers = await store.fireSchedules(batch);
    for (const [index, plan] of batch.entries()) {
      const answer = answers[index] ?? { verdict: "gone" };
      if (isFired(answer)) fired++;
      if (answer.verdict === "error") complain(plan.name, answer);
      else announce(plan, answer, options);
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
  answer: Exclude<FiredSchedule, { verdict: "error" }>,
  { hub, events, logger }: Omit<FirerOptions, "mayFire">,
): void {
  switch (answer.verdict) {
    case "gone":
    case "busy":
      return;
    case "failed": {
      const { code, message } = answer;
      const details = { schedule: name, code, message, next };
      logger.error(details, "pawl: a schedule could not start its run, trying again at its next tick");
      events.emit("schedule.failed", { schedule: name, code, message });
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
