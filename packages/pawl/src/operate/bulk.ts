/**
 * `runs.bulk` and `pawl.bulk`: one action on all runs that match a filter. Checks the options before
 * anything is written. The operation itself is stored, and workers and servers work it off
 * (`work_bulk.sql`). Used by the client.
 */

import type { BulkAction, BulkSettings, StoredBulk, StoredBulkResult } from "../store/client-store.js";
import type { BulkTransport, ClientTransport, RunQuery } from "../store/client-transport.js";
import type { Run } from "../store/views.js";
import { InvalidOption, OperationNotFound } from "../values/errors.js";
import { toJson } from "../values/json.js";
import { checkSignalName } from "../values/names.js";
import { checkInteger, checkOneOf, checkOptions, checkString } from "../values/options.js";
import { isRunId } from "../values/run-id.js";
import { show } from "../values/show.js";
import { checkRerun, type RerunOptions, rerunOptions } from "./rerun.js";

/** The action, and the runs to act on. */
export type BulkOptions<Where> = BulkTarget<Where> &
  (
    | {
        readonly action: "cancel";
        readonly reason?: string | undefined;
        readonly cascade?: boolean | undefined;
      }
    | ({ readonly action: "rerun" } & Omit<RerunOptions, "idempotencyKey">)
    | { readonly action: "pause"; readonly reason?: string | undefined }
    | { readonly action: "resume" }
    | {
        readonly action: "signal";
        /** The name of the signal. */
        readonly signal: string;
        readonly payload?: unknown;
        readonly dedupKey?: string | undefined;
      }
    | { readonly action: "delete" }
  );

interface BulkTarget<Where> {
  /** The filters of `runs.list`. */
  readonly where?: Where | undefined;
  /** Allows a call without any filter: it concerns all runs. */
  readonly all?: boolean | undefined;
}

/** A bulk operation and its progress. It is over once `completedAt` is set. */
export type BulkOperation = StoredBulk;

/** One run of a bulk operation. */
export type BulkResult = StoredBulkResult;

/** The answer of a dry run: nothing was written. */
export interface BulkPreview {
  /** How many runs match. */
  readonly count: number;
  /** The first ten of them, newest first. */
  readonly runs: readonly Run[];
}

export interface BulkPage {
  /** Newest first. */
  readonly operations: BulkOperation[];
  /** Pass it to `bulk.list` to get the next page; null on the last page. */
  readonly cursor: string | null;
}

export interface BulkResultPage {
  /** By run id. */
  readonly results: BulkResult[];
  /** Pass it to `bulk.results` to get the next page; null on the last page. */
  readonly cursor: string | null;
}

export interface BulkListOptions {
  /** The `cursor` of the page before. */
  readonly cursor?: string | undefined;
  /** 1 to 100. Default 20. */
  readonly limit?: number | undefined;
}

export interface BulkResultOptions {
  readonly outcome?: BulkResult["outcome"] | undefined;
  /** The `cursor` of the page before. */
  readonly cursor?: string | undefined;
  /** 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
}

/** Bulk operations that were started with `runs.bulk`. */
export interface Bulk {
  /** The operation with this id. Throws `OperationNotFound`. */
  get(id: string): Promise<BulkOperation>;
  /** A page of operations, newest first. */
  list(options?: BulkListOptions): Promise<BulkPage>;
  /** A page of the runs of an operation, and what became of each. Throws `OperationNotFound`. */
  results(id: string, options?: BulkResultOptions): Promise<BulkResultPage>;
  /**
   * Stops an operation. Runs that it has not reached stay as they are. Answers the operation; one
   * that is over stays as it was. Throws `OperationNotFound`.
   */
  stop(id: string): Promise<BulkOperation>;
}

const actions = ["cancel", "rerun", "pause", "resume", "signal", "delete"] as const;
const outcomes = ["pending", "done", "skipped", "failed"] as const;
const members: Record<BulkAction, readonly string[]> = {
  cancel: ["reason", "cascade"],
  rerun: rerunOptions,
  pause: ["reason"],
  resume: [],
  signal: ["signal", "payload", "dedupKey"],
  delete: [],
};

export interface CheckedBulk {
  readonly query: RunQuery;
  readonly action: BulkAction;
  readonly settings: BulkSettings;
  readonly isDryRun: boolean;
}

/** Checks the options of `runs.bulk`. `toQuery` checks the filters. */
export function checkBulk(
  given: unknown,
  maxBytes: number,
  toQuery: (where: unknown) => RunQuery,
): CheckedBulk {
  const what = "the options of runs.bulk";
  const all = [...new Set(Object.values(members).flat())];
  const {
    action,
    where = {},
    all: isAll = false,
    dryRun = false,
    ...rest
  } = checkOptions(given, ["action", "where", "all", "dryRun", ...all], what);
  const checked = checkOneOf(action, "action", actions);
  const settings = checkOptions(rest, members[checked], `${what} with action "${checked}"`);
  for (const [name, value] of Object.entries({ all: isAll, dryRun })) {
    if (typeof value !== "boolean") {
      throw new InvalidOption(`${name} must be true or false, not ${show(value)}`);
    }
  }
  const query = toQuery(where);
  if (isAll !== true && Object.values(query).every((value) => value === null || value === false)) {
    throw new InvalidOption(
      'runs.bulk needs a filter in where, such as { status: "failed" }; to act on all runs, pass all: true',
    );
  }
  return {
    query,
    action: checked,
    settings: checkSettings(checked, settings, maxBytes),
    isDryRun: dryRun === true,
  };
}

function checkSettings(
  action: BulkAction,
  given: Readonly<Partial<Record<string, unknown>>>,
  maxBytes: number,
): BulkSettings {
  switch (action) {
    case "rerun": {
      const { from, input, state, version } = checkRerun(given, maxBytes);
      return {
        ...(from === null ? {} : { from }),
        ...(input === null ? {} : { input }),
        ...(state === null ? {} : { state }),
        ...(version === null ? {} : { version }),
      };
    }
    case "signal": {
      const { signal, payload = {}, dedupKey } = given;
      if (payload === null) {
        throw new InvalidOption("the payload of a signal must not be null; leave it out, or pass an object");
      }
      return {
        signal: checkSignalName(signal),
        payload: toJson(payload, "payload", maxBytes).text,
        ...(dedupKey === undefined ? {} : { dedupKey: checkString(dedupKey, "dedupKey", { maxBytes: 512 }) }),
      };
    }
    case "cancel":
    case "pause":
    case "resume":
    case "delete": {
      const { reason, cascade } = given;
      if (cascade !== undefined && typeof cascade !== "boolean") {
        throw new InvalidOption(`cascade must be true or false, not ${show(cascade)}`);
      }
      return {
        ...(reason === undefined ? {} : { reason: checkString(reason, "reason", { maxBytes: 8_192 }) }),
        ...(cascade === undefined ? {} : { cascade }),
      };
    }
  }
}

/** Starts the operation, or (`dryRun`) counts the runs and reads the first ten. */
export async function startBulk(
  transport: ClientTransport,
  { isDryRun, ...request }: CheckedBulk,
): Promise<BulkOperation | BulkPreview> {
  if (!isDryRun) return transport.bulk.start(request);
  const { query } = request;
  const [count, { runs }] = await Promise.all([
    transport.count(query),
    transport.list({ ...query, cursor: null, limit: 10 }),
  ]);
  return { count, runs };
}

/** `pawl.bulk`. */
export function bulkOver(transport: () => Promise<{ readonly bulk: BulkTransport }>): Bulk {
  const bulk = async (): Promise<BulkTransport> => (await transport()).bulk;
  const get = async (id: string): Promise<BulkOperation> => {
    const found = isRunId(id) ? await (await bulk()).get(id) : null;
    if (found === null) throw notFound(id);
    return found;
  };
  return {
    get,
    list: async (options = {}) => {
      const { cursor, limit = 20 } = checkOptions(options, ["cursor", "limit"], "the options of bulk.list");
      const page = { before: checkCursor(cursor), limit: checkInteger(limit, "limit", { min: 1, max: 100 }) };
      const operations = await (await bulk()).list(page);
      const last = operations.length === page.limit ? operations.at(-1) : undefined;
      return { operations, cursor: last?.id ?? null };
    },
    results: async (id, options = {}) => {
      const what = "the options of bulk.results";
      const { outcome, cursor, limit = 100 } = checkOptions(options, ["outcome", "cursor", "limit"], what);
      const page = {
        outcome: outcome === undefined ? null : checkOneOf(outcome, "outcome", outcomes),
        after: checkCursor(cursor),
        limit: checkInteger(limit, "limit", { min: 1, max: 1_000 }),
      };
      const results = isRunId(id) ? await (await bulk()).results(id, page) : [];
      if (results.length === 0) await get(id);
      const last = results.length === page.limit ? results.at(-1) : undefined;
      return { results, cursor: last?.runId ?? null };
    },
    stop: async (id) => {
      if (!isRunId(id) || !(await (await bulk()).stop(id))) throw notFound(id);
      return get(id);
    },
  };
}

function notFound(id: unknown): OperationNotFound {
  return new OperationNotFound(`there is no bulk operation ${show(id, 60)}`);
}

function checkCursor(cursor: unknown): string | null {
  if (cursor === undefined) return null;
  if (isRunId(cursor)) return cursor;
  throw new InvalidOption(`cursor must be an unchanged cursor of the page before, not ${show(cursor)}`);
}
