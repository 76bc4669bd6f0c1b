/** Schedules as schemas: the requests and answers of the routes about schedules. */

import type { CatchUp, Overlap, Schedule, ScheduleDetail, Status } from "pawl";
import { Type } from "typebox";
import { date, json, nextCursor, nullable, oneOf, pageCursor, strict } from "../http/schemas.js";
import { duration, startFields } from "./run-schemas.js";

const overlaps: readonly Overlap[] = ["skip", "allow", "cancel"];
const catchUps: readonly CatchUp[] = ["last", "none", "all"];
const statuses: readonly Status[] = ["running", "completed", "failed", "cancelled"];

const members = {
  name: Type.String(),
  definition: Type.String({ description: "The name of the definition that it starts" }),
  version: nullable(Type.Integer()),
  queue: nullable(Type.String()),
  cron: nullable(Type.String()),
  everyMs: nullable(Type.Integer()),
  timeZone: Type.String(),
  jitterMs: Type.Integer(),
  offsetMs: Type.Integer({ description: "It fires so long after each tick" }),
  overlap: oneOf(overlaps),
  catchUp: oneOf(catchUps),
  paused: Type.Boolean(),
  pausedAt: nullable(date),
  setAt: date,
  nextAt: nullable(date),
  lastAt: nullable(date),
  lastRunId: nullable(Type.String()),
  lastStatus: nullable(oneOf(statuses)),
  skippedAt: nullable(date),
  problem: nullable(Type.String({ description: "What is wrong with it" })),
};
const details = {
  input: json("The input of its runs"),
  next: Type.Array(date, { description: "Its next five ticks" }),
};

export const schedulesSchema = strict({
  schedules: Type.Array(Type.Unsafe<Schedule>(strict(members, { title: "Schedule" }))),
  cursor: nextCursor,
});

export const detailSchema = Type.Unsafe<ScheduleDetail>(
  strict({ ...members, ...details }, { title: "ScheduleDetail" }),
);

export const setSchema = Type.Unsafe<ScheduleDetail & { readonly changed: boolean }>(
  strict({
    ...members,
    ...details,
    changed: Type.Boolean({ description: "False: it had this content before" }),
  }),
);

export const listQuery = strict({
  cursor: pageCursor,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: "Default 100" })),
});

export const scheduleParams = strict({ name: Type.String({ description: "The name of the schedule" }) });

const { input, at: _at, idempotencyKey: _key, debounce: _debounce, ...options } = startFields;

export const scheduleFields = {
  cron: Type.Optional(Type.String({ description: 'Such as "0 3 * * *"; this or every' })),
  timeZone: Type.Optional(Type.String({ description: "The IANA time zone of cron. Default UTC" })),
  every: Type.Optional(duration("An interval, at least a second")),
  start: Type.String({ description: "The name of the definition to start" }),
  input,
  options: Type.Optional(strict(options, { description: "The options of each start" })),
  overlap: Type.Optional(oneOf(overlaps)),
  catchUp: Type.Optional(oneOf(catchUps)),
  jitter: Type.Optional(duration("Fire up to this long after each tick")),
  paused: Type.Optional(Type.Boolean({ description: "Default: as it is" })),
};

export const scheduleBody = strict(scheduleFields);

export const backfillBody = strict({
  from: Type.String({ description: "The first tick is at this time or later, ISO 8601" }),
  to: Type.String({ description: "All ticks are before this time" }),
});

export const backfilledSchema = strict({
  started: Type.Integer({ description: "How many runs this call has started" }),
  runs: Type.Array(
    strict({
      at: date,
      runId: Type.String(),
      created: Type.Boolean({ description: "False: the tick had its run before" }),
    }),
  ),
});
