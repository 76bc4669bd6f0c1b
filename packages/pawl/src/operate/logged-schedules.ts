/**
 * Schedules whose changes are lines of the action log: each line is written right after the change.
 * Schedules that workers declare with their code are not actions. Used by the Postgres transport.
 */

import type { ScheduleTransport } from "../store/client-transport.js";
import type { Json } from "../values/json-types.js";

export type Log = (action: string, target: string, detail: Json) => Promise<void>;

export function loggedSchedules(schedules: ScheduleTransport, log: Log): ScheduleTransport {
  return {
    set: async (schedule) => {
      const set = await schedules.set(schedule);
      if (set.changed) await log("schedules.set", schedule.name, null);
      return set;
    },
    get: (name) => schedules.get(name),
    list: (after, limit) => schedules.list(after, limit),
    pause: async (name, paused) => {
      const isFound = await schedules.pause(name, paused);
      if (isFound) await log(paused ? "schedules.pause" : "schedules.resume", name, null);
      return isFound;
    },
    remove: async (name) => {
      const isFound = await schedules.remove(name);
      if (isFound) await log("schedules.remove", name, null);
      return isFound;
    },
    trigger: async (name) => {
      const triggered = await schedules.trigger(name);
      if (triggered !== null) await log("schedules.trigger", name, { runId: triggered.runId });
      return triggered;
    },
    backfill: async (name, from, to) => {
      const runs = await schedules.backfill(name, from, to);
      if (runs !== null) {
        const detail = { from: from.toISOString(), to: to.toISOString(), runs: runs.length };
        await log("schedules.backfill", name, detail);
      }
      return runs;
    },
  };
}
