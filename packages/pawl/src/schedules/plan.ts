/**
 * Decides which ticks of a due schedule start a run, by the time of the database. Pure. Called by
 * the firer.
 */

import type { DueSchedule, Firing } from "../store/schedule-store.js";
import { latestTick, ticksAfter, ticksOf } from "./cron.js";

/** `catchUp: "all"` starts at most so many runs. */
const maxCaughtUp = 1_000;
/** With `catchUp: "none"`, a tick that is later than this was missed. */
const graceMs = 60_000;
/** For a schedule that has no more ticks. */
const farAway = Date.UTC(9998, 0, 1);

export interface PlannedFiring extends Firing {
  /** More ticks were missed than `catchUp: "all"` starts. */
  readonly isCut: boolean;
  /** How late the last of the ticks is. */
  readonly lateMs: number;
}

/** Throws if this process cannot compute the ticks: it does not know the time zone. */
export function planFiring(due: DueSchedule, now: Date): PlannedFiring {
  const { name, nextAt, offsetMs, catchUp } = due;
  const ticks = ticksOf(due);
  const first = nextAt.getTime();
  const until = now.getTime() - offsetMs;
  const latest = latestTick(ticks, first, until);
  const lateMs = until - latest;
  const next = ticks.next(latest) ?? farAway;
  const plan = (chosen: readonly number[], isCut = false): PlannedFiring => ({
    name,
    expected: nextAt,
    ticks: chosen.map((tick) => new Date(tick)),
    next: new Date(next),
    isCut,
    lateMs,
  });
  switch (catchUp) {
    case "last":
      return plan([latest]);
    case "none":
      return plan(lateMs > graceMs ? [] : [latest]);
    case "all": {
      const missed = [first, ...ticksAfter(ticks, first, maxCaughtUp)].filter((tick) => tick <= until);
      return plan(missed.slice(0, maxCaughtUp), missed.length > maxCaughtUp);
    }
  }
}
