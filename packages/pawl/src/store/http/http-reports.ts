/** The reports through a server. Only encodes and decodes. Used by the HTTP transport. */

import type {
  DefinitionPage,
  FailureGroup,
  Keys,
  RegisteredDefinition,
  ReportTransport,
  Series,
  SeriesPoint,
  Slots,
  WaitingRun,
  WorkerInfo,
} from "../reports/reports.js";
import type { Caller } from "./caller.js";
import type { DatesAsText } from "./dates.js";

type Sent<T> = DatesAsText<T>;
const date = (text: string | null): Date | null => (text === null ? null : new Date(text));

export function httpReports(caller: Caller): ReportTransport {
  return {
    series: async (query) => {
      const sent = await caller.call<Omit<Sent<Series>, "points"> & { points: Sent<SeriesPoint>[] }>(
        "GET",
        "/v1/series",
        { query: { ...query } },
      );
      return {
        by: sent.by,
        from: new Date(sent.from),
        to: new Date(sent.to),
        countedTo: date(sent.countedTo),
        points: sent.points.map((point) => ({ ...point, at: new Date(point.at) })),
      };
    },
    failures: async (query) => {
      const { failures } = await caller.call<{ failures: Sent<FailureGroup>[] }>("GET", "/v1/failures", {
        query: { ...query },
      });
      return {
        failures: failures.map((group) => ({
          ...group,
          firstAt: new Date(group.firstAt),
          lastAt: new Date(group.lastAt),
        })),
      };
    },
    waiting: async (query) => {
      const { runs, cursor } = await caller.call<{ runs: Sent<WaitingRun>[]; cursor: string | null }>(
        "GET",
        "/v1/waiting",
        { query: { ...query } },
      );
      return {
        runs: runs.map((run) => ({
          ...run,
          since: date(run.since),
          deadline: date(run.deadline),
          startedAt: new Date(run.startedAt),
        })),
        cursor,
      };
    },
    keys: (query) => caller.call<Keys>("GET", "/v1/keys", { query: { ...query } }),
    slots: (limit, query) =>
      caller.call<Slots>("GET", `/v1/limits/${encodeURIComponent(limit)}/slots`, { query: { ...query } }),
    definitions: async (query): Promise<DefinitionPage> => {
      const { definitions, cursor } = await caller.call<{
        definitions: Sent<RegisteredDefinition>[];
        cursor: string | null;
      }>("GET", "/v1/definitions", { query: { ...query } });
      return {
        definitions: definitions.map((definition) => ({
          ...definition,
          registeredAt: new Date(definition.registeredAt),
        })),
        cursor,
      };
    },
    workers: async (query) => {
      const { workers, cursor } = await caller.call<{
        workers: Sent<WorkerInfo>[];
        cursor: string | null;
      }>("GET", "/v1/workers", { query: { ...query } });
      return {
        workers: workers.map((worker) => ({
          ...worker,
          registeredAt: new Date(worker.registeredAt),
          seenAt: new Date(worker.seenAt),
          leaseUntil: new Date(worker.leaseUntil),
        })),
        cursor,
      };
    },
  };
}
