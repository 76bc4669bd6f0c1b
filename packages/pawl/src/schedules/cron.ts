/**
 * The ticks of a schedule: the moments that a cron expression or an interval names. Pure; nobody
 * here reads a clock. croner finds the local times that match an expression, `time-zone.ts` the
 * moments at which the zone's clock shows them. A local time that does not exist has no tick, and
 * one that exists twice has one tick, at its first occurrence.
 *
 * Ticks of an interval are multiples of it since 1970 in UTC, so they depend on nothing else.
 */

import { Cron } from "croner";
import { InvalidOption } from "../values/errors.js";
import { show } from "../values/show.js";
import { wrongCron } from "./cron-text.js";
import { localTimeAt, momentOf } from "./time-zone.js";

/** When a schedule fires: by `cron` in a time zone, or (`everyMs`) at an interval. */
export interface Timing {
  readonly cron: string | null;
  readonly everyMs: number | null;
  readonly timeZone: string;
}

/** Moments are milliseconds since 1970. */
export interface Ticks {
  /** The first tick after this moment; null: there is none. */
  next(after: number): number | null;
}

/** Ticks of a cron expression are whole seconds. */
const secondMs = 1_000;
/** How many local times in a row may have no tick, before the search gives up. */
const maxSkipped = 10_000;
/** A time from which every cron expression that ever fires has a tick. */
const referenceMs = Date.UTC(2024, 0, 1);
/** How many parsed timings to keep. */
const maxKept = 1_000;
const kept = new Map<string, Ticks>();

/** Checks that a cron expression is valid and that it fires. */
export function checkTicks(timing: Timing): void {
  const { cron } = timing;
  if (cron === null) return;
  try {
    parse(cron);
  } catch (error) {
    throw wrongCron(cron, reasonOf(error));
  }
  if (ticksOf(timing).next(referenceMs) !== null) return;
  throw new InvalidOption(
    `the cron expression ${show(cron)} never fires: no date matches its day and month; change one of them`,
  );
}

/** The ticks of a timing that was checked. Throws if this process does not know its time zone. */
export function ticksOf(timing: Timing): Ticks {
  const { cron, everyMs, timeZone } = timing;
  if (everyMs !== null) return { next: (after) => (Math.floor(after / everyMs) + 1) * everyMs };
  const key = `${timeZone} ${cron}`;
  let ticks = kept.get(key);
  if (ticks === undefined) {
    if (kept.size >= maxKept) kept.clear();
    kept.set(key, (ticks = cronTicks(parse(cron!), timeZone)));
  }
  return ticks;
}

/** The last tick at or before `now`, if `tick` is one. */
export function latestTick(ticks: Ticks, tick: number, now: number): number {
  let latest = tick;
  let until = now;
  // There is a tick at `latest`, and none after `until`.
  while (until - latest >= secondMs) {
    const middle = Math.floor((latest + until) / 2);
    const next = ticks.next(middle);
    if (next !== null && next <= until) latest = next;
    else until = middle;
  }
  const next = ticks.next(latest);
  return next !== null && next <= now ? next : latest;
}

/** The ticks after a moment, in order, at most so many. */
export function* ticksAfter(ticks: Ticks, after: number, most: number): Generator<number> {
  let tick = ticks.next(after);
  for (let count = 0; count < most && tick !== null; count++) {
    yield tick;
    tick = ticks.next(tick);
  }
}

function cronTicks(pattern: Cron, timeZone: string): Ticks {
  return {
    next: (after) => {
      let local = localTimeAt(after, timeZone);
      for (let skipped = 0; skipped < maxSkipped; skipped++) {
        const matching = pattern.nextRun(new Date(local));
        if (matching === null) return null;
        local = matching.getTime();
        const moment = momentOf(local, timeZone);
        if (moment !== null && moment > after) return moment;
      }
      return null;
    },
  };
}

/** In UTC, where croner sees each local time once. */
function parse(cron: string): Cron {
  return new Cron(cron, { timezone: "UTC", mode: "5-or-6-parts", paused: true });
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message.replace(/^Cron\w*: /, "") : String(error);
  // croner counts days and months from 0 in this message.
  if (/^Invalid value for \w+: /.test(text))
    return `${text.replace(/^Invalid value for (\w+): .*$/, "the $1")} is out of range`;
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
