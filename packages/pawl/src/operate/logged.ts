/**
 * Schedules and pauses whose changes are lines of the action log: each line is written right after
 * the change. Schedules that workers declare with their code are not actions. Used by the Postgres
 * transport.
 */

import type { ScheduleTransport } from "../store/client-transport.js";
import type { PauseTarget, PauseTransport } from "../store/pauses.js";
import type { Json } from "../values/json-types.js";

type Log = (action: string, target: string, detail: Json) => Promise<void>;

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

export function loggedPauses(pauses: PauseTransport, log: Log): PauseTransport {
  const nameOf = ({ scope, version }: PauseTarget, verb: string): [action: string, detail: Json] => [
    `${scope === "queue" ? "queues" : "definitions"}.${verb}`,
    version === null ? null : { version },
  ];
  return {
    pauseRun: async (runId, request) => {
      const answer = await pauses.pauseRun(runId, request);
      if (answer.verdict === "changed") await log("runs.pause", runId, reasonOf(request));
      return answer;
    },
    resumeRun: async (runId) => {
      const answer = await pauses.resumeRun(runId);
      if (answer.verdict === "changed") await log("runs.resume", runId, null);
      return answer;
    },
    pause: async (target, request) => {
      const answer = await pauses.pause(target, request);
      const [action, detail] = nameOf(target, "pause");
      if (answer.changed) await log(action, target.name, merge(detail, reasonOf(request)));
      return answer;
    },
    resume: async (target) => {
      const answer = await pauses.resume(target);
      const [action, detail] = nameOf(target, "resume");
      if (answer.changed) await log(action, target.name, detail);
      return answer;
    },
    list: () => pauses.list(),
  };
}

const reasonOf = ({ reason }: { readonly reason: string | null }): Json =>
  reason === null ? null : { reason };

const merge = (one: Json, other: Json): Json =>
  one === null ? other : other === null ? one : Object.assign({}, one, other);
