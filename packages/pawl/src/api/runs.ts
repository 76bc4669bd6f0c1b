/**
 * Runs as people see them: the `Run` object, its statuses, and the filters and cursors of `runs.list`. Pure mapping
 * between the store and the public API, the same for every transport.
 */

import { fromBase64Url, toBase64Url } from "../values/bytes.js";
import type { AnyDefinition } from "../define/definition.js";
import type { ErrorRecord } from "../values/error-record.js";
import { InvalidOption } from "../values/errors.js";
import { fromJson, toJson } from "../values/json.js";
import type { Json } from "../values/json-types.js";
import { checkAnyName, checkVersion } from "../values/names.js";
import { checkInteger, checkOneOf, checkOptions, checkString } from "../values/options.js";
import { show } from "../values/show.js";
import { checkDate, checkPhase } from "../run/new-run.js";
import { type Phase, phasesOf, type Status, statusOf } from "../values/phase.js";
import type { RunFilter, StoredRun } from "../store/store.js";

export interface Run {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  /** null until a worker has registered the definition of a run started by name. */
  readonly kind: AnyDefinition["kind"] | null;
  readonly status: Status;
  readonly phase: Phase;
  readonly step: string | null;
  readonly attempt: number;
  readonly queue: string;
  readonly priority: number;
  readonly input: Json;
  readonly state: Json | null;
  readonly output: Json | null;
  readonly error: ErrorRecord | null;
  readonly parentId: string | null;
  readonly idempotencyKey: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  readonly eligibleAt: Date | null;
  readonly expiresAt: Date | null;
}

export interface ListOptions {
  readonly name?: string | undefined;
  readonly version?: number | undefined;
  readonly status?: Status | undefined;
  readonly phase?: Phase | undefined;
  readonly queue?: string | undefined;
  readonly kind?: AnyDefinition["kind"] | undefined;
  /** Failed with an error of this code, or of this name if it has no code. */
  readonly error?: string | undefined;
  /** Children of this run. */
  readonly parentId?: string | undefined;
  /** Started at this time or later. */
  readonly since?: Date | string | undefined;
  /** Started before this time. */
  readonly until?: Date | string | undefined;
  /** What the input contains: `{ user: { id: 42 } }` finds those whose input has that member, whatever else it has. */
  readonly input?: unknown;
  /** What the page before gave as `cursor`. */
  readonly cursor?: string | undefined;
  /** 1 to 100. Default 20. */
  readonly limit?: number | undefined;
}

/** What `runs.count` takes: the filters of a listing. */
export type CountOptions = Omit<ListOptions, "cursor" | "limit">;

export interface Page {
  /** Newest first. */
  readonly runs: Run[];
  /** Give it to `runs.list` for the next page; null at the end. */
  readonly cursor: string | null;
}

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
  "cursor",
  "limit",
] as const;
/** How long a filter of the input may be as JSON. */
const maxInputFilter = 16 * 1024;
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
    error: stored.error === null ? null : (fromJson(stored.error) as unknown as ErrorRecord),
    parentId: stored.parentId,
    idempotencyKey: stored.idempotencyKey,
    startedAt: stored.startedAt,
    completedAt: stored.completedAt,
    eligibleAt: stored.eligibleAt,
    expiresAt: stored.expiresAt,
  };
}

/** What `runs.list` asks the store. */
export function toFilter(options: unknown): RunFilter {
  return toChecked(checkOptions(options, filters, "the options of runs.list"));
}

/** What `runs.count` asks the store: all pages at once. */
export function toCountFilter(options: unknown): RunFilter {
  const counted = filters.filter((name) => name !== "cursor" && name !== "limit");
  return toChecked(checkOptions(options, counted, "the options of runs.count"));
}

function toChecked(given: Partial<Record<(typeof filters)[number], unknown>>): RunFilter {
  const {
    name,
    version,
    status,
    phase,
    queue,
    kind,
    error,
    parentId,
    since,
    until,
    input,
    cursor,
    limit = 20,
  } = given;
  return {
    name: name === undefined ? null : checkAnyName("definition", name),
    version: version === undefined ? null : checkVersion(version),
    phases: checkPhases(status, phase),
    queue: queue === undefined ? null : checkAnyName("queue", queue),
    kind: kind === undefined ? null : checkOneOf(kind, "kind", kinds),
    error: error === undefined ? null : checkString(error, "error", { maxBytes: 512 }),
    parentId: parentId === undefined ? null : checkParent(parentId),
    since: since === undefined ? null : checkDate(since, "since"),
    until: until === undefined ? null : checkDate(until, "until"),
    input: input === undefined ? null : toJson(input, "input", maxInputFilter).text,
    before: cursor === undefined ? null : readCursor(cursor),
    limit: checkInteger(limit, "limit", { min: 1, max: 100 }),
  };
}

function checkParent(parentId: unknown): string {
  if (isRunId(parentId)) return parentId;
  throw new InvalidOption(`parentId must be the id of a run, a number as text, not ${show(parentId)}`);
}

function checkPhases(status: unknown, phase: unknown): readonly Phase[] | null {
  const ofStatus = status === undefined ? null : phasesOf[checkOneOf(status, "status", statuses)];
  if (phase === undefined) return ofStatus;
  const one = checkPhase(phase, "phase");
  return ofStatus === null || ofStatus.includes(one) ? [one] : [];
}

export function writeCursor(last: NonNullable<RunFilter["before"]>): string {
  return toBase64Url(JSON.stringify([last.startedAt, last.runId]));
}

function readCursor(cursor: unknown): NonNullable<RunFilter["before"]> {
  try {
    const parsed: unknown = JSON.parse(fromBase64Url(String(cursor)));
    if (Array.isArray(parsed) && parsed.length === 2) {
      const [startedAt, runId] = parsed as unknown[];
      if (typeof startedAt === "string" && !Number.isNaN(Date.parse(startedAt)) && isRunId(runId)) {
        return { startedAt, runId };
      }
    }
  } catch {
    // Not one of ours: refused below.
  }
  throw new InvalidOption(`cursor must be what runs.list gave as cursor, unchanged, not ${show(cursor)}`);
}

/** Whether this can be the id of a run: a positive number of at most 63 bits, in decimal. */
export function isRunId(value: unknown): value is string {
  return typeof value === "string" && /^[1-9]\d{0,18}$/.test(value) && BigInt(value) < 2n ** 63n;
}
