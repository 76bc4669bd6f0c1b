/**
 * `pawl.schedules`: start runs by cron or at an interval. Checks options and encodes inputs before
 * anything is sent. Used by the client; its transport carries the calls.
 */

import type { RunId, StartTarget } from "../define/definition.js";
import { checkDate } from "../run/new-run.js";
import type { ScheduleTransport } from "../store/client-transport.js";
import type { Schedule, ScheduleDetail, TickRun } from "../store/schedule-store.js";
import { InvalidOption, RunNotFound } from "../values/errors.js";
import { checkScheduleName } from "../values/names.js";
import { checkOptions } from "../values/options.js";
import { checkSchedule, type ScheduleOptions } from "./options.js";

const rangeNames = ["from", "to"] as const;
/** How many schedules one call reads. */
const page = 1_000;

export interface BackfillOptions {
  /** The first tick is at this time or later. */
  readonly from: Date | string;
  /** All ticks are before this time. Ticks of the future are left out. */
  readonly to: Date | string;
}

export interface Backfilled {
  /** How many runs this call has started. */
  readonly started: number;
  /** The run of each tick, oldest first. `created` is false if the tick had its run before. */
  readonly runs: readonly TickRun[];
}

export interface Schedules {
  /**
   * Sets a schedule, for good: workers and servers start its runs, whatever process set it. The same
   * content changes nothing (`changed` is false). A changed `cron`, `every` or `timeZone` computes
   * the next tick anew. Returns it with its next five ticks.
   */
  set<Target extends StartTarget>(
    name: string,
    options: ScheduleOptions<Target>,
  ): Promise<ScheduleDetail & { readonly changed: boolean }>;
  /** The schedule with its next five ticks. Throws `RunNotFound`. */
  get(name: string): Promise<ScheduleDetail>;
  /** All schedules, ordered by name. */
  list(): Promise<Schedule[]>;
  /** Starts no more runs until `resume`. Its running runs go on. Throws `RunNotFound`. */
  pause(name: string): Promise<void>;
  /** Goes on. `catchUp` decides about the ticks that passed meanwhile. Throws `RunNotFound`. */
  resume(name: string): Promise<void>;
  /** Starts a run now, also if the schedule is paused or its last run still runs. */
  trigger(name: string): Promise<{ readonly runId: RunId }>;
  /** Removes a schedule. Its runs go on. `removed` is false if there was none. */
  remove(name: string): Promise<{ readonly removed: boolean }>;
  /**
   * Starts the runs of all ticks in a range, at most 10,000. A tick that already has a run gets no
   * second one. Throws `RunNotFound`.
   */
  backfill(name: string, options: BackfillOptions): Promise<Backfilled>;
}

export function schedulesOver(
  transport: () => Promise<ScheduleTransport>,
  { maxPayloadBytes }: { readonly maxPayloadBytes: number },
): Schedules {
  const pause = async (given: string, paused: boolean): Promise<void> => {
    const name = checkScheduleName(given);
    if (!(await (await transport()).pause(name, paused))) throw noSchedule(name);
  };
  return {
    set: async (name, options) => {
      const what = "the options of schedules.set";
      const schedule = await checkSchedule(name, options, { what, maxBytes: maxPayloadBytes });
      return (await transport()).set(schedule);
    },
    get: async (given) => {
      const name = checkScheduleName(given);
      return (await (await transport()).get(name)) ?? fail(noSchedule(name));
    },
    list: async () => {
      const schedules = await transport();
      const all: Schedule[] = [];
      for (let after: string | null | undefined; after !== null;) {
        const next = await schedules.list(after ?? null, page);
        all.push(...next.schedules);
        after = next.cursor;
      }
      return all;
    },
    pause: (name) => pause(name, true),
    resume: (name) => pause(name, false),
    trigger: async (given) => {
      const name = checkScheduleName(given);
      return (await (await transport()).trigger(name)) ?? fail(noSchedule(name));
    },
    remove: async (given) => {
      const name = checkScheduleName(given);
      return { removed: await (await transport()).remove(name) };
    },
    backfill: async (given, options) => {
      const name = checkScheduleName(given);
      const range = checkOptions(options, rangeNames, "the options of schedules.backfill");
      const [from, to] = [checkDate(range.from, rangeNames[0]), checkDate(range.to, rangeNames[1])];
      if (from >= to) {
        throw new InvalidOption(
          `backfill takes a range, and from (${from.toISOString()}) is not before to (${to.toISOString()})`,
        );
      }
      const runs = (await (await transport()).backfill(name, from, to)) ?? fail(noSchedule(name));
      return { started: runs.filter(({ created }) => created).length, runs };
    },
  };
}

function noSchedule(name: string): RunNotFound {
  return new RunNotFound(`there is no schedule "${name}"; list them with schedules.list()`);
}

function fail(error: Error): never {
  throw error;
}
