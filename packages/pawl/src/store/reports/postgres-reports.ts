/**
 * Reads the reports from PostgreSQL: calls the SQL functions of `schema/functions/series` and
 * `reports`, and decodes their rows. Used by `PostgresStore`.
 */

import { percentile } from "./percentiles.js";
import { readPosition, writePosition } from "./position.js";
import type {
  Declared,
  KeyRun,
  Prefixes,
  ReportTransport,
  SeriesPoint,
  WaitingRun,
  WorkerInfo,
} from "./reports.js";

/** Calls one function of the schema. */
type Call = <Row>(name: string, values: readonly unknown[]) => Promise<Row[]>;

interface PointRow {
  at: string;
  started: string;
  completed: string;
  failed: string;
  cancelled: string;
  latency: string | null;
  backlog: string | null;
  counted_to: string | null;
}

interface WaitingRow {
  id: string | null;
  name: string;
  version: number;
  kind: string;
  queue: string;
  step: string | null;
  signals: string;
  since: string | null;
  deadline: string | null;
  started_at: string;
  tags: string | null;
  next_at: string | null;
  next_id: string | null;
}

interface WorkerRow {
  id: string;
  info: string;
  serves: string;
  queues: string;
  lease_ms: number;
  registered_at: string;
  seen_at: string;
  lease_until: string;
  alive: boolean;
  claims: number;
  owner: string | null;
}

/** The reports for callers with these prefixes (null: all names and queues). */
export function reportsOver(call: Call, prefixes: Prefixes | null): ReportTransport {
  const [names, queues] = [prefixes?.names ?? null, prefixes?.queues ?? null];
  return {
    async series({ by, from, to, name, queue }) {
      const values = [by, text(from), text(to), name, queue, names, queues];
      const rows = await call<PointRow>("read_series", values);
      const points = rows.map(toPoint);
      const [first, last] = [points[0]!.at, points.at(-1)!.at];
      const end = new Date(last.getTime() + (by === "minute" ? 60_000 : 3_600_000));
      return { by, from: first, to: end, countedTo: date(rows[0]!.counted_to), points };
    },

    async failures({ since, name, limit }) {
      const rows = await call<{
        name: string;
        code: string;
        step: string | null;
        message: string | null;
        failed: string;
        first_at: string;
        last_at: string;
        last_run_id: string;
      }>("read_failures", [text(since), name, names, limit]);
      return {
        failures: rows.map((row) => ({
          name: row.name,
          code: row.code,
          step: row.step,
          message: row.message,
          count: Number(row.failed),
          firstAt: new Date(row.first_at),
          lastAt: new Date(row.last_at),
          lastRunId: row.last_run_id,
        })),
      };
    },

    async waiting({ name, signal, cursor, limit }) {
      const [at = null, id = null] = readPosition(cursor, ["text", "id"]);
      const rows = await call<WaitingRow>("list_waiting", [name, signal, names, queues, at, id, limit]);
      const next = rows[0];
      return {
        runs: rows.filter((row) => row.id !== null).map(toWaiting),
        cursor:
          next === undefined || next.next_id === null ? null : writePosition([next.next_at, next.next_id]),
      };
    },

    async keys({ cursor, limit }) {
      const [after = null] = readPosition(cursor, ["text"]);
      const rows = await call<{
        key: string | null;
        holder: string | null;
        waiting: number;
        first: string | null;
        next: string | null;
      }>("list_keys", [after, names, queues, limit]);
      const next = rows[0]?.next ?? null;
      return {
        keys: rows.flatMap(({ key, holder, waiting, first }) =>
          key === null ? [] : [{ key, holder: toRun(holder), waiting, first: toRun(first) }],
        ),
        cursor: next === null ? null : writePosition([next]),
      };
    },

    async slots(limit, page) {
      const [after = null] = readPosition(page.cursor, ["text"]);
      const rows = await call<{ key: string; held: number; waiting: number; holders: string }>("list_slots", [
        limit,
        after,
        names,
        queues,
        page.limit,
      ]);
      return {
        keys: rows.map(({ key, held, waiting, holders }) => ({
          key: key === "" ? null : key,
          held,
          waiting,
          holders: JSON.parse(holders) as KeyRun[],
        })),
        cursor: rows.length < page.limit ? null : writePosition([rows.at(-1)!.key]),
      };
    },

    async definitions({ name, cursor, limit }) {
      const [afterName = null, afterVersion = null] = readPosition(cursor, ["text", "id"]);
      const rows = await call<{
        name: string;
        version: number;
        kind: string;
        queue: string;
        priority: number;
        retention_ms: number;
        timeout_ms: number | null;
        registered_at: string;
        workers: number;
        declared: string;
      }>("list_definitions", [name, names, queues, afterName, afterVersion, limit]);
      const last = rows.at(-1);
      return {
        definitions: rows.map((row) => ({
          name: row.name,
          version: row.version,
          kind: row.kind,
          queue: row.queue,
          priority: row.priority,
          retentionMs: row.retention_ms,
          timeoutMs: row.timeout_ms,
          registeredAt: new Date(row.registered_at),
          workers: row.workers,
          declared: JSON.parse(row.declared) as Declared,
        })),
        cursor:
          last === undefined || rows.length < limit ? null : writePosition([last.name, String(last.version)]),
      };
    },

    async workers({ cursor, limit }) {
      const [after = null] = readPosition(cursor, ["text"]);
      const rows = await call<WorkerRow>("list_workers", [after, names, queues, limit]);
      return {
        workers: rows.map(toWorker),
        cursor: rows.length < limit ? null : writePosition([rows.at(-1)!.id]),
      };
    },
  };
}

function toPoint(row: PointRow): SeriesPoint {
  const histogram = row.latency === null ? [] : (JSON.parse(row.latency) as number[]);
  return {
    at: new Date(row.at),
    started: Number(row.started),
    completed: Number(row.completed),
    failed: Number(row.failed),
    cancelled: Number(row.cancelled),
    p50Ms: percentile(histogram, 0.5),
    p95Ms: percentile(histogram, 0.95),
    backlog: row.backlog === null ? null : Number(row.backlog),
  };
}

function toWaiting(row: WaitingRow): WaitingRun {
  return {
    runId: row.id!,
    name: row.name,
    version: row.version,
    kind: row.kind,
    queue: row.queue,
    step: row.step,
    signals: JSON.parse(row.signals) as string[],
    since: date(row.since),
    deadline: date(row.deadline),
    startedAt: new Date(row.started_at),
    tags: row.tags === null ? {} : (JSON.parse(row.tags) as Record<string, string>),
  };
}

function toWorker(row: WorkerRow): WorkerInfo {
  const { host, pid, node } = JSON.parse(row.info) as { host?: unknown; pid?: unknown; node?: unknown };
  return {
    id: row.id,
    host: typeof host === "string" ? host : null,
    pid: typeof pid === "number" ? pid : null,
    runtime: typeof node === "string" ? `node ${node}` : null,
    serves: (JSON.parse(row.serves) as string[]).map((served) => {
      const at = served.lastIndexOf("@");
      return { name: served.slice(0, at), version: Number(served.slice(at + 1)) };
    }),
    queues: JSON.parse(row.queues) as string[],
    leaseMs: row.lease_ms,
    registeredAt: new Date(row.registered_at),
    seenAt: new Date(row.seen_at),
    leaseUntil: new Date(row.lease_until),
    alive: row.alive,
    claims: row.claims,
    token: row.owner,
  };
}

function toRun(json: string | null): KeyRun | null {
  return json === null ? null : (JSON.parse(json) as KeyRun);
}

function text(given: Date | null): string | null {
  return given === null ? null : given.toISOString();
}

function date(given: string | null): Date | null {
  return given === null ? null : new Date(given);
}
