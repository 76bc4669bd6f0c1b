/**
 * Schedules: set, list, read, pause, resume, trigger, remove and backfill. A token with prefixes
 * reaches the schedules whose definition and queue it may start.
 */

import { RunNotFound, type ScheduleDetail } from "pawl";
import { check } from "pawl/engine";
import { type Static, Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { answers, strict } from "../http/schemas.js";
import {
  backfillBody,
  backfilledSchema,
  detailSchema,
  listQuery,
  scheduleBody,
  scheduleFields,
  scheduleParams,
  schedulesSchema,
  setSchema,
} from "./schedule-schemas.js";
import { toNewRun } from "./start-request.js";

const tags = ["schedules"];
const pageSize = 100;
const done = strict({});

export function scheduleRoutes(app: App, { pawl, engine }: Backend): void {
  app.get(
    "/v1/schedules",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "listSchedules",
        summary: "List schedules, ordered by name",
        tags,
        querystring: listQuery,
        response: answers({ 200: schedulesSchema }),
      },
    },
    async ({ query, caller }) => {
      const { schedules, cursor } = await engine.schedules.list(
        query.cursor ?? null,
        query.limit ?? pageSize,
      );
      return { schedules: schedules.filter((schedule) => caller.allows(namesOf(schedule))), cursor };
    },
  );

  app.get(
    "/v1/schedules/:name",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "getSchedule",
        summary: "Read a schedule with its next five ticks",
        tags,
        params: scheduleParams,
        response: answers({ 200: detailSchema }),
      },
    },
    ({ params, caller }) => find(params.name, caller),
  );

  app.put(
    "/v1/schedules/:name",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "setSchedule",
        summary: "Set a schedule",
        description:
          "The same content changes nothing. A changed cron, interval or time zone computes the next tick anew.",
        tags,
        params: scheduleParams,
        body: scheduleBody,
        response: answers({ 200: setSchema }),
      },
    },
    ({ params, body, caller }) => set(engine.schedules, params.name, body, caller),
  );

  app.post(
    "/v1/workers/schedules",
    {
      config: { scope: "worker", prefixes: "checked" },
      schema: {
        operationId: "setWorkerSchedule",
        summary: "Set a schedule that the worker declares",
        tags: ["workers"],
        body: strict({ name: Type.String({ description: "The name of the schedule" }), ...scheduleFields }),
        response: answers({ 200: setSchema }),
      },
    },
    ({ body: { name, ...body }, caller }) => set(engine.declaredSchedules, name, body, caller),
  );

  app.delete(
    "/v1/schedules/:name",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "removeSchedule",
        summary: "Remove a schedule; its runs go on",
        tags,
        params: scheduleParams,
        response: answers({ 200: strict({ removed: Type.Boolean() }) }),
      },
    },
    async ({ params, caller }) => {
      const found = await engine.schedules.get(params.name);
      if (found === null || !caller.allows(namesOf(found))) return { removed: false };
      return pawl.schedules.remove(params.name);
    },
  );

  for (const verb of ["pause", "resume"] as const) {
    app.post(
      `/v1/schedules/:name/${verb}`,
      {
        config: { scope: "write", prefixes: "checked" },
        schema: {
          operationId: `${verb}Schedule`,
          summary:
            verb === "pause"
              ? "Pause a schedule: it starts no more runs"
              : "Resume a schedule; catchUp decides about missed ticks",
          tags,
          params: scheduleParams,
          response: answers({ 200: done }),
        },
      },
      async ({ params, caller }) => {
        await find(params.name, caller);
        await pawl.schedules[verb](params.name);
        return {};
      },
    );
  }

  app.post(
    "/v1/schedules/:name/trigger",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "triggerSchedule",
        summary: "Start the run of a schedule now",
        tags,
        params: scheduleParams,
        response: answers({ 201: strict({ runId: Type.String() }) }),
      },
    },
    async ({ params, caller }, reply) => {
      await find(params.name, caller);
      return reply.code(201).send(await pawl.schedules.trigger(params.name));
    },
  );

  app.post(
    "/v1/schedules/:name/backfill",
    {
      config: { scope: "write", prefixes: "checked" },
      schema: {
        operationId: "backfillSchedule",
        summary: "Start the runs of all ticks in a range",
        description: "At most 10,000 ticks. A tick that already has a run gets no second one.",
        tags,
        params: scheduleParams,
        body: backfillBody,
        response: answers({ 200: backfilledSchema }),
      },
    },
    async ({ params, body, caller }) => {
      await find(params.name, caller);
      const { started, runs } = await pawl.schedules.backfill(params.name, body);
      return { started, runs: [...runs] };
    },
  );

  /** The schedule, if the caller may start its runs. The others do not exist for it. */
  async function find(name: string, caller: Caller): Promise<ScheduleDetail> {
    const found = await pawl.schedules.get(name);
    if (caller.allows(namesOf(found))) return found;
    throw new RunNotFound(`there is no schedule "${name}"`);
  }

  async function set(
    schedules: Backend["engine"]["declaredSchedules"],
    name: string,
    body: Static<typeof scheduleBody>,
    caller: Caller,
  ) {
    const { start, input, options = {}, ...given } = body;
    caller.require({ name: start, queue: options.queue ?? "" });
    const times = check.scheduleTimes(name, given);
    const before = await engine.schedules.get(times.name);
    // A schedule of somebody else is not overwritten.
    if (before !== null) caller.require(namesOf(before));
    const of = "the schedule";
    check.scheduledOptions(options);
    const run = await toNewRun(
      engine,
      start,
      { ...options, ...(input === undefined ? {} : { input }) },
      { of },
    );
    return schedules.set({ ...times, run });
  }
}

/** The names that the prefixes of a token must allow. A start by name may use any queue. */
function namesOf({ definition, queue }: { definition: string; queue: string | null }) {
  return { name: definition, queue: queue ?? "" };
}
