/**
 * `runs.get`, `runs.find`, `runs.list` and `runs.count`: checks filters and cursors, and maps stored runs to the
 * runs that users read. Pure. Used by the client and its Postgres transport.
 */

import { fromBase64Url, toBase64Url } from "../values/bytes.js";
import type { AnyDefinition } from "../define/definition.js";
import type { Tags } from "../define/start-options.js";
import { readScheduleKey } from "../define/schedule-key.js";
import { readErrorRecord } from "../values/error-record.js";
import { InvalidOption } from "../values/errors.js";
import { fromJson, toJson } from "../values/json.js";
import type { Json } from "../values/json-types.js";
import { checkAnyName, checkVersion } from "../values/names.js";
import { checkInteger, checkOneOf, checkOptions, checkString, type GivenOptions } from "../values/options.js";
import { show } from "../values/show.js";
import { checkDate, checkPhase, checkUniqueKey } from "../run/new-run.js";
import { checkCorrelationKey, checkTags } from "../run/rare-options.js";
import { type Phase, phasesOf, type Status, statusOf } from "../values/phase.js";
import type { FindQuery, RunFilter, StoredRun } from "../store/client-store.js";
import type { RunPageQuery, RunQuery } from "../store/client-transport.js";
import type { Run } from "../store/views.js";
import { isRunId } from "../values/run-id.js";

export type { Page, Pause, Run } from "../store/views.js";

export interface ListOptions {
  readonly name?: string | undefined;
  readonly version?: number | undefined;
  readonly status?: Status | undefined;
  readonly phase?: Phase | undefined;
  readonly queue?: string | undefined;
  readonly kind?: AnyDefinition["kind"] | undefined;
  /** Runs that failed with this error code, or with this name of an error without a code. */
  readonly error?: string | undefined;
  /** Children of this run. */
  readonly parentId?: string | undefined;
  /** Runs started at this time or later. */
  readonly since?: Date | string | undefined;
  /** Runs started before this time. */
  readonly until?: Date | string | undefined;
  /**
   * Runs whose input contains this: `{ user: { id: 42 } }` finds inputs with that member, among
   * others.
   */
  readonly input?: unknown;
  /** Runs that have all of these tags: `{ customer: "42", plan: "pro" }`. */
  readonly tags?: Tags | undefined;
  /** Runs with this correlation key. */
  readonly correlationKey?: string | undefined;
  /** Runs that are paused themselves, not by their queue or definition. */
  readonly paused?: true | undefined;
  /** The `cursor` of the page before. */
  readonly cursor?: string | undefined;
  /** 1 to 100. Default 20. */
  readonly limit?: number | undefined;
}

/** The key of `runs.find`: one of the three, and the name of a definition. */
export type FindOptions = (
  | { readonly idempotencyKey: string }
  | { readonly uniqueKey: string | Uint8Array }
  | { readonly correlationKey: string }
) & {
  /** Only runs of this definition. */
  readonly name?: string | undefined;
};

/** The filters of `runs.count`: those of `runs.list`. */
export type CountOptions = Omit<ListOptions, "cursor" | "limit">;

const filters = [
  "name",
  "version",
  "status",
  "phase",
  "queue",
  "kind",
  "error",
  "parentId",
  "since",
  "until",
  "input",
  "tags",
  "correlationKey",
  "paused",
] as const;
/** The most bytes of JSON of the filter `input`. */
const maxInputBytes = 16 * 1024;
const kinds = ["job", "machine", "workflow"] as const;
const statuses = ["running", "completed", "failed", "cancelled"] as const;

export function toRun(stored: StoredRun): Run {
  return {
    runId: stored.runId,
    name: stored.name,
    version: stored.version,
    kind: stored.kind as Run["kind"],
    status: statusOf(stored.phase),
    phase: stored.phase,
    step: stored.step,
    attempt: stored.attempt,
    queue: stored.queue,
    priority: stored.priority,
    input: fromJson(stored.input),
    state: stored.state === null ? null : fromJson(stored.state),
    output: stored.result === null ? null : fromJson(stored.result),
    error: stored.error === null ? null : readErrorRecord(fromJson(stored.error)),
    parentId: stored.parentId,
    idempotencyKey: stored.idempotencyKey,
    correlationKey: stored.extra.correlationKey ?? null,
    tags: stored.extra.tags ?? {},
    schedule: readScheduleKey(stored.extra.schedule ?? stored.idempotencyKey),
    startedAt: stored.startedAt,
    completedAt: stored.completedAt,
    eligibleAt: stored.eligibleAt,
    expiresAt: stored.expiresAt,
    deadlineAt: stored.extra.deadlineAt === undefined ? null : new Date(stored.extra.deadlineAt),
    rerunOf: stored.extra.rerunOf ?? null,
    rerunAs: stored.extra.rerunAs ?? null,
    originRunId: stored.extra.originId ?? stored.runId,
    traceId: stored.extra.trace?.split("-")[1] ?? null,
    paused: stored.paused,
  };
}

/** The checked filters of `runs.list`. */
export function toPageQuery(options: unknown): RunPageQuery {
  const given = checkOptions(options, [...filters, "cursor", "limit"], "the options of runs.list");
  const { cursor, limit = 20 } = given;
  return {
    ...toQuery(given),
    cursor: cursor === undefined ? null : checkCursor(cursor),
    limit: checkInteger(limit, "limit", { min: 1, max: 100 }),
  };
}

/** The checked filters of `runs.count` and `runs.bulk`. */
export function toCountQuery(options: unknown, what = "the options of runs.count"): RunQuery {
  return toQuery(checkOptions(options, filters, what));
}

/** The checked key of `runs.find`. */
export function toFindQuery(options: unknown): FindQuery {
  const keys = ["idempotencyKey", "uniqueKey", "correlationKey"] as const;
  const given = checkOptions(options, [...keys, "name"], "the options of runs.find");
  const { name, idempotencyKey, uniqueKey, correlationKey } = given;
  if (keys.filter((key) => given[key] !== undefined).length !== 1) {
    throw new InvalidOption(
      `runs.find takes one of ${keys.join(", ")}, such as { correlationKey: "order-42" }, not ${show(options)}`,
    );
  }
  return {
    name: name === undefined ? null : checkAnyName("definition", name),
    idempotencyKey:
      idempotencyKey === undefined ? null : checkString(idempotencyKey, "idempotencyKey", { maxBytes: 512 }),
    uniqueKey: uniqueKey === undefined ? null : checkUniqueKey(uniqueKey),
    correlationKey: correlationKey === undefined ? null : checkCorrelationKey(correlationKey),
  };
}

function toQuery(given: GivenOptions<(typeof filters)[number]>): RunQuery {
  const { name, version, status, phase, queue, kind, error, parentId, since, until, input } = given;
  const { tags, correlationKey, paused } = given;
  return {
    name: name === undefined ? null : checkAnyName("definition", name),
    version: version === undefined ? null : checkVersion(version),
    status: status === undefined ? null : checkOneOf(status, "status", statuses),
    phase: phase === undefined ? null : checkPhase(phase, "phase"),
    queue: queue === undefined ? null : checkAnyName("queue", queue),
    kind: kind === undefined ? null : checkOneOf(kind, "kind", kinds),
    error: error === undefined ? null : checkString(error, "error", { maxBytes: 512 }),
    parentId: parentId === undefined ? null : checkParent(parentId),
    since: since === undefined ? null : checkDate(since, "since"),
    until: until === undefined ? null : checkDate(until, "until"),
    input: input === undefined ? null : toJson(input, "input", maxInputBytes).text,
    tags: tags === undefined ? null : checkTags(tags),
    correlationKey: correlationKey === undefined ? null : checkCorrelationKey(correlationKey),
    paused: checkPaused(paused),
  };
}

/** The filters that are set, as JSON, for people to read. */
export function whereOf({ since, until, input, ...query }: RunQuery): Record<string, Json> {
  const dates = { since: since?.toISOString() ?? null, until: until?.toISOString() ?? null };
  const all = { ...query, ...dates, input: input === null ? null : fromJson(input) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null && value !== false));
}

/** The same filters for the store: phases instead of a status, and the cursor decoded. */
export function toFilter({ status, phase, cursor, ...rest }: RunPageQuery): RunFilter {
  return {
    ...rest,
    phases: toPhases(status, phase),
    before: cursor === null ? null : readCursor(cursor),
  };
}

function toPhases(status: Status | null, phase: Phase | null): readonly Phase[] | null {
  const ofStatus = status === null ? null : phasesOf[status];
  if (phase === null) return ofStatus;
  return ofStatus === null || ofStatus.includes(phase) ? [phase] : [];
}

function checkPaused(paused: unknown): boolean {
  if (paused === undefined || paused === true) return paused === true;
  throw new InvalidOption(`paused must be true, or left out for all runs, not ${show(paused)}`);
}

function checkParent(parentId: unknown): string {
  if (isRunId(parentId)) return parentId;
  throw new InvalidOption(`parentId must be the id of a run, a number as text, not ${show(parentId)}`);
}

export function writeCursor(last: NonNullable<RunFilter["before"]>): string {
  return toBase64Url(JSON.stringify([last.startedAt, last.runId]));
}

/** Refuses a wrong cursor before anything is sent. The transport decodes it. */
function checkCursor(cursor: unknown): string {
  if (typeof cursor === "string") {
    readCursor(cursor);
    return cursor;
  }
  throw wrongCursor(cursor);
}

function readCursor(cursor: string): NonNullable<RunFilter["before"]> {
  try {
    const parsed: unknown = JSON.parse(fromBase64Url(cursor));
    if (Array.isArray(parsed) && parsed.length === 2) {
      const [startedAt, runId] = parsed as unknown[];
      if (typeof startedAt === "string" && !Number.isNaN(Date.parse(startedAt)) && isRunId(runId)) {
        return { startedAt, runId };
      }
    }
  } catch {
    // Not a cursor of ours: refused below.
  }
  throw wrongCursor(cursor);
}

function wrongCursor(cursor: unknown): InvalidOption {
  return new InvalidOption(`cursor must be an unchanged cursor of runs.list, not ${show(cursor)}`);
}
