/**
 * Schedules straight in Postgres: computes ticks from the time of the database, and tells the firers
 * of this process about a schedule that may be due earlier. `by` names the caller for the action
 * log; schedules that workers declare with their code are not actions. Used by the Postgres
 * transport, workers and the server.
 */

import type { Hub } from "../local/hub.js";
import type { Actor } from "../store/client-store.js";
import type { ScheduleTransport } from "../store/client-transport.js";
import type {
  NewSchedule,
  Schedule,
  ScheduleDetail,
  ScheduledDefinition,
  ScheduleStore,
  StoredSchedule,
  TickRun,
} from "../store/schedule-store.js";
import { onNextTurn } from "../timing/next-turn.js";
import { newClaimId } from "../values/claim-id.js";
import { InvalidOption } from "../values/errors.js";
import { fromJson } from "../values/json.js";
import { statusOf } from "../values/phase.js";
import { checkTicks, ticksAfter, ticksOf, type Timing } from "./cron.js";
import { problemOf } from "./problem.js";

/** How many of the next ticks to show. */
const shownTicks = 5;
/** How many ticks one call of `backfill` may start, and one statement. */
const maxBackfilled = 10_000;
const backfillBatch = 1_000;

export class LocalSchedules implements ScheduleTransport {
  readonly #store: ScheduleStore;
  readonly #hub: Hub;
  readonly #by: () => Actor | null;

  constructor(store: ScheduleStore, hub: Hub, by: () => Actor | null) {
    this.#store = store;
    this.#hub = hub;
    this.#by = by;
  }

  async set(schedule: NewSchedule): Promise<ScheduleDetail & { readonly changed: boolean }> {
    checkTicks(schedule);
    const { now } = await this.#store.schedules({ name: schedule.name, after: null, limit: 1 });
    const next = ticksOf(schedule).next(now.getTime());
    if (next === null) throw neverFires(schedule);
    const changed = await this.#store.setSchedule(schedule, new Date(next), this.#by());
    if (changed) this.#hub.scheduled();
    const found = await this.get(schedule.name);
    if (found === null)
      throw new InvalidOption(`the schedule ${schedule.name} was removed at the same moment`);
    return { ...found, changed };
  }

  async get(name: string): Promise<ScheduleDetail | null> {
    const { now, schedules } = await this.#store.schedules({ name, after: null, limit: 1 });
    const [found] = schedules;
    return found === undefined ? null : toDetail(found, now);
  }

  async list(after: string | null, limit: number): ReturnType<ScheduleTransport["list"]> {
    const { schedules } = await this.#store.schedules({ name: null, after, limit });
    const last = schedules.length === limit ? schedules.at(-1) : undefined;
    return { schedules: schedules.map(toView), cursor: last?.name ?? null };
  }

  async pause(name: string, paused: boolean): Promise<boolean> {
    const found = await this.#store.pauseSchedule(name, paused, this.#by());
    if (found && !paused) this.#hub.scheduled();
    return found;
  }

  remove(name: string): Promise<boolean> {
    return this.#store.removeSchedule(name, this.#by());
  }

  async trigger(name: string): Promise<{ readonly runId: string } | null> {
    const triggered = await this.#store.triggerSchedule(name, newClaimId(), this.#by());
    if (triggered === null) return null;
    const { runId, created, at } = triggered;
    this.#announce(triggered, [{ at, runId, created }]);
    return { runId };
  }

  async backfill(name: string, from: Date, to: Date): Promise<readonly TickRun[] | null> {
    const { now, schedules } = await this.#store.schedules({ name, after: null, limit: 1 });
    const [schedule] = schedules;
    if (schedule === undefined) return null;
    const ticks = await ticksWithin(schedule, from, to <= now ? to : new Date(now.getTime() + 1));
    const runs: TickRun[] = [];
    for (let begin = 0; begin < ticks.length; begin += backfillBatch) {
      const range = {
        ticks: ticks.slice(begin, begin + backfillBatch),
        from: begin === 0 ? from : ticks[begin]!,
        to: ticks[begin + backfillBatch] ?? to,
      };
      const started = await this.#store.backfillSchedule(name, range, this.#by());
      if (started === null) return null;
      this.#announce(started, started.runs);
      runs.push(...started.runs);
    }
    return runs;
  }

  #announce({ definition, version, queue }: ScheduledDefinition, runs: readonly TickRun[]): void {
    for (const { runId, created } of runs) {
      if (created) this.#hub.emit("run.started", { runId, name: definition, version, parentId: null });
    }
    this.#hub.hint(queue);
  }
}

/** The ticks of `[from, to)`. */
async function ticksWithin(schedule: StoredSchedule, from: Date, to: Date): Promise<Date[]> {
  const found: Date[] = [];
  for (const tick of ticksAfter(ticksOf(schedule), from.getTime() - 1, maxBackfilled + 1)) {
    if (tick >= to.getTime()) return found;
    found.push(new Date(tick));
    // Thousands of local times take a while to compute: let other work go on meanwhile.
    if (found.length % 100 === 0) await new Promise<void>((resolve) => onNextTurn(resolve));
  }
  if (found.length <= maxBackfilled) return found;
  throw new InvalidOption(
    `the schedule ${schedule.name} has more than ${maxBackfilled} ticks from ${from.toISOString()} to ${to.toISOString()}; ` +
      `backfill a shorter range, such as the one to ${found.at(-1)!.toISOString()}, and then the rest`,
  );
}

function toDetail(stored: StoredSchedule, now: Date): ScheduleDetail {
  return {
    ...toView(stored),
    input: fromJson(stored.run.input ?? "null"),
    next: nextTicks(stored, stored.nextAt, now),
  };
}

/** The next ticks, also of a paused schedule whose next tick has passed. */
function nextTicks(timing: Timing, nextAt: Date, now: Date): Date[] {
  const after = Math.max(nextAt.getTime() - 1, now.getTime());
  try {
    return [...ticksAfter(ticksOf(timing), after, shownTicks)].map((tick) => new Date(tick));
  } catch {
    // A time zone that only the process that has set it knows.
    return [];
  }
}

function toView(stored: StoredSchedule): Schedule {
  const { run, lastRun, pausedAt } = stored;
  return {
    name: stored.name,
    definition: run.name,
    version: run.version,
    queue: run.queue,
    cron: stored.cron,
    everyMs: stored.everyMs,
    timeZone: stored.timeZone,
    jitterMs: stored.jitterMs,
    offsetMs: stored.offsetMs,
    overlap: stored.overlap,
    catchUp: stored.catchUp,
    paused: pausedAt !== null,
    pausedAt,
    setAt: stored.setAt,
    nextAt: pausedAt === null ? stored.nextAt : null,
    lastAt: stored.lastAt,
    lastRunId: stored.lastRunId,
    lastStatus: lastRun === null ? null : statusOf(lastRun.phase),
    skippedAt: stored.skippedAt,
    problem: problemOf(stored),
  };
}

function neverFires({ cron }: NewSchedule): InvalidOption {
  return new InvalidOption(`the cron expression "${cron}" never fires again`);
}
