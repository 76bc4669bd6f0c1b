/**
 * Schedules through a server: calls of the REST API. Only encodes and decodes; the server computes
 * the ticks and fires them. Used by the HTTP transport and by workers behind a server.
 */

import { RunNotFound } from "../../values/errors.js";
import type { ScheduleTransport } from "../client-transport.js";
import type { NewSchedule, Schedule, ScheduleDetail, TickRun } from "../schedule-store.js";
import type { Caller } from "./caller.js";
import { type DatesAsText, readSchedule, readScheduleDetail } from "./dates.js";
import { startBody } from "./requests.js";

type SentDetail = DatesAsText<ScheduleDetail & { readonly changed: boolean }>;

const pathOf = (name: string): string => `/v1/schedules/${encodeURIComponent(name)}`;

export function httpSchedules(caller: Caller): ScheduleTransport {
  return {
    async set(schedule) {
      const body = scheduleBody(schedule);
      return toSet(await caller.call<SentDetail>("PUT", pathOf(schedule.name), { body }));
    },
    get: (name) => orNull(async () => readScheduleDetail(await caller.call<SentDetail>("GET", pathOf(name)))),
    async list(after, limit) {
      type Page = { schedules: DatesAsText<Schedule>[]; cursor: string | null };
      const page = await caller.call<Page>("GET", "/v1/schedules", { query: { cursor: after, limit } });
      return { schedules: page.schedules.map(readSchedule), cursor: page.cursor };
    },
    async pause(name, paused) {
      const path = `${pathOf(name)}/${paused ? "pause" : "resume"}`;
      return (await orNull(() => caller.call("POST", path, { body: {}, repeatable: true }))) !== null;
    },
    async remove(name) {
      return (await caller.call<{ removed: boolean }>("DELETE", pathOf(name))).removed;
    },
    trigger: (name) => orNull(() => caller.call("POST", `${pathOf(name)}/trigger`, { body: {} })),
    backfill: (name, from, to) =>
      orNull(async () => {
        // The keys of the ticks make a second call harmless.
        const answer = await caller.call<{ runs: DatesAsText<TickRun>[] }>(
          "POST",
          `${pathOf(name)}/backfill`,
          {
            body: { from: from.toISOString(), to: to.toISOString() },
            repeatable: true,
          },
        );
        return answer.runs.map((run) => ({ ...run, at: new Date(run.at) }));
      }),
  };
}

/** The schedules that a worker declares. Its token needs the scope of workers only. */
export function workerSchedules(caller: Caller): Pick<ScheduleTransport, "set"> {
  return {
    async set(schedule) {
      const body = { name: schedule.name, ...scheduleBody(schedule) };
      return toSet(
        await caller.call<SentDetail>("POST", "/v1/workers/schedules", { body, repeatable: true }),
      );
    },
  };
}

/** JSON drops members that are undefined. */
function scheduleBody(schedule: NewSchedule): object {
  const { run, cron, everyMs, timeZone, jitterMs, overlap, catchUp, paused } = schedule;
  const { name: start, input, ...options } = startBody(run);
  return {
    start,
    input,
    options,
    ...(cron === null ? { every: everyMs } : { cron, timeZone }),
    jitter: jitterMs,
    overlap,
    catchUp,
    paused: paused ?? undefined,
  };
}

function toSet(sent: SentDetail): ScheduleDetail & { readonly changed: boolean } {
  return { ...readScheduleDetail(sent), changed: sent.changed };
}

async function orNull<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof RunNotFound) return null;
    throw error;
  }
}
