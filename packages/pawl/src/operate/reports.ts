/**
 * The reports of a client: `pawl.series`, `failures`, `waiting`, `keys`, `workers`,
 * `definitions.list` and `limits.slots`. Checks options and sets defaults; the transport reads. Used by
 * the client, and by the server for each token.
 */

import { checkDate } from "../run/new-run.js";
import type {
  DefinitionPage,
  DefinitionsQuery,
  Failures,
  FailuresQuery,
  Keys,
  ReportPage,
  ReportTransport,
  Series,
  SeriesQuery,
  Slots,
  Waiting,
  WaitingQuery,
  Workers,
} from "../store/reports/reports.js";
import { InvalidOption } from "../values/errors.js";
import { checkAnyName, checkSignalName } from "../values/names.js";
import { checkInteger, checkOneOf, checkOptions, checkString } from "../values/options.js";

export interface SeriesOptions {
  /** The length of a point: minutes are kept for a day, hours for 31 days. Default "minute". */
  readonly by?: "minute" | "hour" | undefined;
  /** Default: an hour before `to`; by hour, a day. */
  readonly from?: Date | string | undefined;
  /** Default: now. */
  readonly to?: Date | string | undefined;
  /** Only runs of this definition. */
  readonly name?: string | undefined;
  /** Only runs of this queue. */
  readonly queue?: string | undefined;
}

export interface FailuresOptions {
  /** Rounded down to an hour, at most 31 days ago. Default: a day ago. */
  readonly since?: Date | string | undefined;
  /** Only failures of this definition. */
  readonly name?: string | undefined;
  /** 1 to 200. Default 50. */
  readonly limit?: number | undefined;
}

export interface ReportPageOptions {
  /** The `cursor` of the page before. */
  readonly cursor?: string | undefined;
  /** 1 to 100. Default 50. */
  readonly limit?: number | undefined;
}

export interface WaitingOptions extends ReportPageOptions {
  /** Only runs of this definition. */
  readonly name?: string | undefined;
  /** Only runs that await this signal. */
  readonly signal?: string | undefined;
}

export interface DefinitionListOptions extends ReportPageOptions {
  /** Only versions of this definition. */
  readonly name?: string | undefined;
}

export interface Reports {
  /**
   * Starts, ends, latencies and backlog of each minute or hour, for charts. Workers and servers count
   * them in the background, some seconds late.
   */
  series(options?: SeriesOptions): Promise<Series>;
  /** Failures in groups of one definition, error code and step, the largest group first. */
  failures(options?: FailuresOptions): Promise<Failures>;
  /** A page of the runs that wait for a signal, newest start first. A page may be short. */
  waiting(options?: WaitingOptions): Promise<Waiting>;
  /** A page of the partition keys that runs hold or wait for. A page may be short. */
  keys(options?: ReportPageOptions): Promise<Keys>;
  /** A page of the workers: where they run, what they serve, until when their lease lasts. */
  workers(options?: ReportPageOptions): Promise<Workers>;
  /** A page of the registered definitions, with what their code declares. */
  definitions(options?: DefinitionListOptions): Promise<DefinitionPage>;
  /** A page of the keys of a concurrency limit: who holds its slots, how many runs wait. */
  slots(limit: string, options?: ReportPageOptions): Promise<Slots>;
}

const dayMs = 86_400_000;
const longestMs = { minute: dayMs, hour: 31 * dayMs };
const page = ["cursor", "limit"] as const;

export function reportsOver(transport: () => Promise<ReportTransport>): Reports {
  return {
    series: async (options = {}) => {
      const query = toSeriesQuery(options);
      return (await transport()).series(query);
    },
    failures: async (options = {}) => {
      const query = toFailuresQuery(options);
      return (await transport()).failures(query);
    },
    waiting: async (options = {}) => {
      const query = toWaitingQuery(options);
      return (await transport()).waiting(query);
    },
    keys: async (options = {}) => {
      const query = toPage(checkOptions(options, page, "the options of keys"));
      return (await transport()).keys(query);
    },
    workers: async (options = {}) => {
      const query = toPage(checkOptions(options, page, "the options of workers"));
      return (await transport()).workers(query);
    },
    definitions: async (options = {}) => {
      const query = toDefinitionsQuery(options);
      return (await transport()).definitions(query);
    },
    slots: async (limit, options = {}) => {
      const name = checkAnyName("limit", limit);
      const query = toPage(checkOptions(options, page, "the options of limits.slots"));
      return (await transport()).slots(name, query);
    },
  };
}

function toSeriesQuery(options: unknown): SeriesQuery {
  const names = ["by", "from", "to", "name", "queue"] as const;
  const given = checkOptions(options, names, "the options of series");
  const by = given.by === undefined ? "minute" : checkOneOf(given.by, "by", ["minute", "hour"] as const);
  const from = given.from === undefined ? null : checkDate(given.from, "from");
  const to = given.to === undefined ? null : checkDate(given.to, "to");
  if (from !== null && to !== null && from >= to) {
    throw new InvalidOption(
      `from must be before to, not ${from.toISOString()} with to ${to.toISOString()}: exchange them`,
    );
  }
  if (from !== null && to !== null && to.getTime() - from.getTime() > longestMs[by]) {
    throw new InvalidOption(
      by === "minute"
        ? 'from and to may be at most a day apart by minute: bring them closer, or give by: "hour"'
        : "from and to may be at most 31 days apart: hours are kept that long",
    );
  }
  return {
    by,
    from,
    to,
    name: nameOf("definition", given.name),
    queue: nameOf("queue", given.queue),
  };
}

function toFailuresQuery(options: unknown): FailuresQuery {
  const {
    since,
    name,
    limit = 50,
  } = checkOptions(options, ["since", "name", "limit"], "the options of failures");
  return {
    since: since === undefined ? null : checkDate(since, "since"),
    name: nameOf("definition", name),
    limit: checkInteger(limit, "limit", { min: 1, max: 200 }),
  };
}

function toWaitingQuery(options: unknown): WaitingQuery {
  const given = checkOptions(options, ["name", "signal", ...page], "the options of waiting");
  return {
    name: nameOf("definition", given.name),
    signal: given.signal === undefined ? null : checkSignalName(given.signal),
    ...toPage(given),
  };
}

function toDefinitionsQuery(options: unknown): DefinitionsQuery {
  const given = checkOptions(options, ["name", ...page], "the options of definitions.list");
  return { name: nameOf("definition", given.name), ...toPage(given) };
}

function toPage({ cursor, limit = 50 }: { cursor?: unknown; limit?: unknown }): ReportPage {
  return {
    cursor: cursor === undefined ? null : checkString(cursor, "cursor", { maxBytes: 4_096 }),
    limit: checkInteger(limit, "limit", { min: 1, max: 100 }),
  };
}

function nameOf(kind: Parameters<typeof checkAnyName>[0], given: unknown): string | null {
  return given === undefined ? null : checkAnyName(kind, given);
}
