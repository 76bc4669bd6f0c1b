/**
 * Reports for operators and the dashboard: charts, failures in groups, waiting runs, held keys and
 * slots, definitions, workers. A token with prefixes gets the part that it may see. Every answer is
 * bounded, whatever the database holds.
 */

import { PawlError } from "pawl";
import { Type } from "typebox";
import type { Backend } from "../backend/backend.js";
import { examineDatabase, examineRuns } from "../doctor/examine.js";
import type { Finding } from "../doctor/findings.js";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { answers, strict } from "../http/schemas.js";
import {
  definitionsSchema,
  doctorSchema,
  failuresSchema,
  keysSchema,
  type ListedFinding,
  queries,
  seriesSchema,
  slotsSchema,
  waitingSchema,
  workersSchema,
} from "./report-schemas.js";

const config = { scope: "read", prefixes: "checked" } as const;
const tags = ["reports"];

export function reportRoutes(app: App, { engine, schema }: Backend): void {
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

  const doctor = doctorOver({ url: engine.url, schema });
  app.get(
    "/v1/doctor",
    {
      config,
      schema: {
        operationId: "getDoctor",
        summary: "Check the database, and say how to fix what is wrong",
        description:
          "As `pawl doctor`. An answer may be 10 s old. A token with prefixes gets the findings about its own runs.",
        tags,
        response: answers({ 200: doctorSchema }),
      },
    },
    ({ caller }) => doctor(caller),
  );
}

const patienceMs = 60_000;
/** How long an answer of the doctor serves further requests: it opens a connection for each. */
const keptMs = 10_000;

/** Examines the database for callers. Those without prefixes share the answers. */
function doctorOver(address: { readonly url: string; readonly schema: string }) {
  const describe = (error: unknown): string =>
    error instanceof PawlError ? error.message : "the check failed";
  let known: { readonly atMs: number; readonly findings: Promise<readonly Finding[]> } | undefined;
  return async (caller: Caller): Promise<{ findings: ListedFinding[] }> => {
    if (caller.hasPrefixes) {
      return toAnswer(await examineRuns(address, { patienceMs }, (what) => caller.allows(what)));
    }
    if (known === undefined || performance.now() - known.atMs > keptMs) {
      known = { atMs: performance.now(), findings: examineDatabase(address, { patienceMs, describe }) };
    }
    return toAnswer(await known.findings);
  };
}

function toAnswer(findings: readonly Finding[]): { findings: ListedFinding[] } {
  return { findings: findings.map((finding) => ({ ...finding, fix: finding.fix ?? null })) };
}
