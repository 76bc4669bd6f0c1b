/** The answers of the routes about reports, as schemas. */

import type {
  DefinitionPage,
  Failures,
  FailureGroup,
  KeyRun,
  Keys,
  PartitionKey,
  RegisteredDefinition,
  Series,
  SeriesPoint,
  SlotKey,
  Slots,
  Waiting,
  WaitingRun,
  WorkerInfo,
  Workers,
} from "pawl";
import { Type } from "typebox";
import { date, declaredSchema, nextCursor, nullable, oneOf, pageCursor, strict } from "../http/schemas.js";

const count = (description?: string) =>
  Type.Integer({ minimum: 0, ...(description === undefined ? {} : { description }) });
const kinds = ["job", "machine", "workflow"] as const;

const pointSchema = Type.Unsafe<SeriesPoint>(
  strict(
    {
      at: date,
      started: count(),
      completed: count(),
      failed: count(),
      cancelled: count(),
      p50Ms: nullable(
        Type.Number({ description: "Half of the runs that ended then took at most this long" }),
      ),
      p95Ms: nullable(Type.Number({ description: "95 of 100 took at most this long" })),
      backlog: nullable(count("The most due runs that waited at one time, up to 10,000; null: not sampled")),
    },
    { title: "SeriesPoint", description: "One minute or hour" },
  ),
);

export const seriesSchema = Type.Unsafe<Series>(
  strict(
    {
      by: oneOf(["minute", "hour"] as const),
      from: date,
      to: date,
      countedTo: nullable(date),
      points: Type.Array(pointSchema),
    },
    { title: "Series", description: "Oldest first; the counts are complete up to countedTo" },
  ),
);

const groupSchema = Type.Unsafe<FailureGroup>(
  strict(
    {
      name: Type.String(),
      code: Type.String({ description: "The filter `error` of a listing" }),
      step: nullable(Type.String()),
      message: nullable(Type.String({ description: "Of the last one, at most 500 characters" })),
      count: count(),
      firstAt: date,
      lastAt: date,
      lastRunId: Type.String(),
    },
    { title: "FailureGroup", description: "One definition, error code and step" },
  ),
);

export const failuresSchema = Type.Unsafe<Failures>(
  strict(
    { failures: Type.Array(groupSchema) },
    { title: "Failures", description: "The largest group first" },
  ),
);

const waitingRunSchema = Type.Unsafe<WaitingRun>(
  strict(
    {
      runId: Type.String(),
      name: Type.String(),
      version: Type.Integer(),
      kind: oneOf(kinds),
      queue: Type.String(),
      step: nullable(Type.String()),
      signals: Type.Array(Type.String(), { description: "The signals that it awaits" }),
      since: nullable(date),
      deadline: nullable(date),
      startedAt: date,
      tags: Type.Record(Type.String(), Type.String()),
    },
    { title: "WaitingRun" },
  ),
);

export const waitingSchema = Type.Unsafe<Waiting>(
  strict({ runs: Type.Array(waitingRunSchema), cursor: nextCursor }, { title: "WaitingRuns" }),
);

const keyRunSchema = Type.Unsafe<KeyRun>(
  strict(
    {
      runId: Type.String(),
      name: Type.String(),
      version: Type.Integer(),
      queue: nullable(Type.String()),
      phase: Type.String(),
      worker: nullable(Type.String()),
    },
    { title: "KeyRun", description: "A run that holds a key, or is the first in line for it" },
  ),
);

const keySchema = Type.Unsafe<PartitionKey>(
  strict(
    {
      key: Type.String(),
      holder: nullable(keyRunSchema),
      waiting: count("Runs that it blocks, up to 1,000"),
      first: nullable(keyRunSchema),
    },
    { title: "PartitionKey" },
  ),
);

export const keysSchema = Type.Unsafe<Keys>(
  strict({ keys: Type.Array(keySchema), cursor: nextCursor }, { title: "PartitionKeys" }),
);

const slotSchema = Type.Unsafe<SlotKey>(
  strict(
    {
      key: nullable(Type.String({ description: "null: of runs that name no key" })),
      held: count(),
      waiting: count("Up to 1,000"),
      holders: Type.Array(keyRunSchema, { description: "The first ten" }),
    },
    { title: "SlotKey" },
  ),
);

export const slotsSchema = Type.Unsafe<Slots>(
  strict({ keys: Type.Array(slotSchema), cursor: nextCursor }, { title: "Slots" }),
);

const definitionSchema = Type.Unsafe<RegisteredDefinition>(
  strict(
    {
      name: Type.String(),
      version: Type.Integer(),
      kind: oneOf(kinds),
      queue: Type.String(),
      priority: Type.Integer(),
      retentionMs: Type.Number(),
      timeoutMs: nullable(Type.Number()),
      registeredAt: date,
      workers: count("Live workers that serve it"),
      declared: declaredSchema,
    },
    { title: "Definition", description: "A registered version of a definition" },
  ),
);

export const definitionsSchema = Type.Unsafe<DefinitionPage>(
  strict({ definitions: Type.Array(definitionSchema), cursor: nextCursor }, { title: "Definitions" }),
);

const workerSchema = Type.Unsafe<WorkerInfo>(
  strict(
    {
      id: Type.String(),
      host: nullable(Type.String()),
      pid: nullable(Type.Integer()),
      runtime: nullable(Type.String()),
      serves: Type.Array(strict({ name: Type.String(), version: Type.Integer() })),
      queues: Type.Array(Type.String()),
      leaseMs: Type.Number(),
      registeredAt: date,
      seenAt: date,
      leaseUntil: date,
      alive: Type.Boolean(),
      claims: count("Runs that it executes, up to 1,000"),
      token: nullable(Type.String({ description: "The token that registered it through a server" })),
    },
    { title: "Worker" },
  ),
);

export const workersSchema = Type.Unsafe<Workers>(
  strict({ workers: Type.Array(workerSchema), cursor: nextCursor }, { title: "Workers" }),
);

export interface ListedFinding {
  readonly check: string;
  readonly level: "ok" | "note" | "wrong";
  readonly text: string;
  readonly fix: string | null;
}

const findingSchema = strict(
  {
    check: Type.String({ description: "The name of the check" }),
    level: oneOf(["ok", "note", "wrong"] as const),
    text: Type.String(),
    fix: nullable(Type.String({ description: "How to fix it" })),
  },
  { title: "Finding" },
);

export const doctorSchema = strict({ findings: Type.Array(findingSchema) }, { title: "Findings" });

const time = (description: string) => Type.Optional(Type.String({ description: `${description}, ISO 8601` }));
const name = Type.Optional(Type.String({ description: "Only of this definition" }));
const page = {
  cursor: pageCursor,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "Default 50" })),
};

export const queries = {
  series: strict({
    by: Type.Optional(oneOf(["minute", "hour"] as const)),
    from: time("Default: an hour before `to`; by hour, a day"),
    to: time("Default: now"),
    name,
    queue: Type.Optional(Type.String({ description: "Only of this queue" })),
  }),
  failures: strict({
    since: time("Rounded down to an hour; default: a day ago"),
    name,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "Default 50" })),
  }),
  waiting: strict({
    name,
    signal: Type.Optional(Type.String({ description: "Only runs that await this signal" })),
    ...page,
  }),
  definitions: strict({ name, ...page }),
  page: strict(page),
};
