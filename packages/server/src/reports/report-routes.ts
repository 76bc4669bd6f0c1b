/**
 * Reports for operators and the dashboard: charts, failures in groups, waiting runs, held keys and
 * slots, definitions, workers. A token with prefixes gets the part that it may see. Every answer is
 * bounded, whatever the database holds.
 */

import { Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import { answers, strict } from "../http/schemas.js";
import {
  definitionsSchema,
  failuresSchema,
  keysSchema,
  queries,
  seriesSchema,
  slotsSchema,
  waitingSchema,
  workersSchema,
} from "./report-schemas.js";

const config = { scope: "read", prefixes: "checked" } as const;
const tags = ["reports"];

export function reportRoutes(app: App, { engine }: Backend): void {
  app.get(
    "/v1/series",
    {
      config,
      schema: {
        operationId: "getSeries",
        summary: "Starts, ends, latencies and backlog over time",
        description:
          "For charts: each minute of at most a day, or each hour of at most 31 days. Counted in the background, some seconds late.",
        tags,
        querystring: queries.series,
        response: answers({ 200: seriesSchema }),
      },
    },
    ({ query, caller }) => engine.reports(caller.prefixes).series(query),
  );

  app.get(
    "/v1/failures",
    {
      config,
      schema: {
        operationId: "listFailures",
        summary: "Failures in groups of definition, error code and step",
        tags,
        querystring: queries.failures,
        response: answers({ 200: failuresSchema }),
      },
    },
    ({ query, caller }) => engine.reports(caller.prefixes).failures(query),
  );

  app.get(
    "/v1/waiting",
    {
      config,
      schema: {
        operationId: "listWaiting",
        summary: "Runs that wait for a signal",
        description: "Newest start first. A page may be short, or empty, although it has a cursor.",
        tags,
        querystring: queries.waiting,
        response: answers({ 200: waitingSchema }),
      },
    },
    ({ query, caller }) => engine.reports(caller.prefixes).waiting(query),
  );

  app.get(
    "/v1/keys",
    {
      config,
      schema: {
        operationId: "listKeys",
        summary: "Partition keys that runs hold or wait for",
        description: "In order of the keys. A page may be short, or empty, although it has a cursor.",
        tags,
        querystring: queries.page,
        response: answers({ 200: keysSchema }),
      },
    },
    ({ query, caller }) => engine.reports(caller.prefixes).keys(query),
  );

  app.get(
    "/v1/limits/:name/slots",
    {
      config,
      schema: {
        operationId: "listSlots",
        summary: "Who holds the slots of a concurrency limit",
        description: "By key. A token with prefixes sees only its own runs among the holders.",
        tags,
        params: strict({ name: Type.String({ description: "The name of the limit" }) }),
        querystring: queries.page,
        response: answers({ 200: slotsSchema }),
      },
    },
    ({ params, query, caller }) => {
      caller.require({ name: params.name, queue: null });
      return engine.reports(caller.prefixes).slots(params.name, query);
    },
  );

  app.get(
    "/v1/definitions",
    {
      config,
      schema: {
        operationId: "listDefinitions",
        summary: "Registered definitions, with their defaults and what their code declares",
        tags,
        querystring: queries.definitions,
        response: answers({ 200: definitionsSchema }),
      },
    },
    ({ query, caller }) => engine.reports(caller.prefixes).definitions(query),
  );

  app.get(
    "/v1/workers",
    {
      config,
      schema: {
        operationId: "listWorkers",
        summary: "Workers: where they run, what they serve, until when their lease lasts",
        tags,
        querystring: queries.page,
        response: answers({ 200: workersSchema }),
      },
    },
    ({ query, caller }) => engine.reports(caller.prefixes).workers(query),
  );
}
