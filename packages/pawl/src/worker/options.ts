/**
 * The options of `serve`: their types, defaults and checks. The checked settings are complete and
 * in milliseconds; the worker checks nothing again.
 */

import { type AnyDefinition, isDefinition } from "../define/definition.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import { checkName } from "../values/names.js";
import { checkFunction, checkInteger, checkOptions, checkString, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import type { DatabaseSource } from "../store/driver/source-types.js";
import type { StoredLimit } from "../store/store.js";
import { consoleLogger } from "../values/console-logger.js";
import { checkLimits, type LimitOptions } from "../local/limits.js";
import { type CheckedDeclaration, checkDeclared, type DeclaredSchedules } from "../schedules/declared.js";

export interface ServeOptions {
  /**
   * The URL of the database or of a server, connection options, or your own pool. Default:
   * `PAWL_URL`, `DATABASE_URL`, else a local Postgres in `.pawl/postgres`.
   */
  readonly url?: DatabaseSource | undefined;
  /** The schema of Pawl in that database. Default "pawl". A server has its own setting for that. */
  readonly schema?: string | undefined;
  /** Bearer token, if the URL is that of a server. Default: `PAWL_TOKEN`. */
  readonly token?: string | undefined;
  /** The queues to serve, each with its concurrency. Default: the queue of each definition, 10. */
  readonly queues?: Readonly<Record<string, number>> | undefined;
  /** How long claims last without a heartbeat, at least a second. Default "10s". */
  readonly lease?: Duration | undefined;
  /** Heartbeat interval, at most a third of `lease`. Default "2s". */
  readonly heartbeat?: Duration | undefined;
  /**
   * The shortest interval between two polls of an empty queue. It grows up to `maxPollInterval`.
   * Default "5ms".
   */
  readonly pollInterval?: Duration | undefined;
  /** The longest interval between two polls of an empty queue. Default "1s". */
  readonly maxPollInterval?: Duration | undefined;
  /** How many runs to claim ahead of free slots, per queue. Default 0. */
  readonly prefetch?: number | undefined;
  /** Poll only when at least this many slots are free. Default 1. */
  readonly minDemand?: number | undefined;
  /**
   * How often to reclaim runs of dead workers and repair stuck ones. Idle workers check less often.
   * Default "1s".
   */
  readonly reapInterval?: Duration | undefined;
  /**
   * How often to delete ended runs past their retention; `false`: not by this worker. Default "5m".
   */
  readonly sweepInterval?: Duration | false | undefined;
  /** How long `stop` waits for running steps before it aborts them. Default "5s". */
  readonly drainTimeout?: Duration | undefined;
  /**
   * A step that takes longer fails with `StepTimeout`, and its `ctx.signal` is aborted. Default: no
   * limit.
   */
  readonly maxStepDuration?: Duration | undefined;
  /**
   * Rate limits to set when the worker starts, such as `{ stripe: { allowed: 100, period: "1s" }
   * }`. The last writer wins.
   */
  readonly limits?: Readonly<Record<string, LimitOptions>> | undefined;
  /**
   * Schedules to set when the worker starts, such as `{ nightly: { cron: "0 3 * * *", start: cleanup
   * } }`. The last writer wins. A schedule that you leave out here goes on until you remove it.
   */
  readonly schedules?: DeclaredSchedules | undefined;
  /** The largest state, result or step result as JSON. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  /**
   * Metrics for Prometheus: `worker.metrics()` returns them as text. With a `port`, the worker
   * serves them at `/metrics` there. `false`: no metrics. Default true.
   */
  readonly metrics?: boolean | MetricsOptions | undefined;
  /**
   * Store the stacks of errors with runs and steps, without the frames of Pawl. The log has them in
   * any case. Default true.
   */
  readonly recordStacks?: boolean | undefined;
  /** For example pino. Pawl logs no payloads. Default: warnings and errors to `stderr`. */
  readonly logger?: Logger | undefined;
}

export interface MetricsOptions {
  /** The port that serves `GET /metrics`. Default: none. */
  readonly port?: number | undefined;
  /**
   * The address to listen on. Default "127.0.0.1". Use "0.0.0.0" for a Prometheus on another
   * machine.
   */
  readonly host?: string | undefined;
  /**
   * Add metrics that are read from the database, such as the depth of queues. One worker, or the
   * server, is enough for that. Default false.
   */
  readonly database?: boolean | undefined;
}

export interface ServeSettings {
  readonly definitions: readonly AnyDefinition[];
  readonly schema: string;
  readonly queues: ReadonlyMap<string, number>;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly pollMs: number;
  readonly maxPollMs: number;
  readonly prefetch: number;
  readonly minDemand: number;
  readonly reapMs: number;
  readonly sweepMs: number | null;
  readonly drainMs: number;
  readonly maxStepMs: number | null;
  readonly limits: readonly StoredLimit[];
  readonly schedules: readonly CheckedDeclaration[];
  readonly maxPayloadBytes: number;
  /** null: no metrics. */
  readonly metrics: MetricsSettings | null;
  readonly recordStacks: boolean;
  readonly logger: Logger;
}

interface MetricsSettings {
  readonly port: number | null;
  readonly host: string;
  readonly database: boolean;
}

const defaults = {
  schema: "pawl",
  concurrency: 10,
  lease: "10s",
  heartbeat: "2s",
  pollInterval: "5ms",
  maxPollInterval: "1s",
  prefetch: 0,
  minDemand: 1,
  reapInterval: "1s",
  sweepInterval: "5m",
  drainTimeout: "5s",
  maxPayloadBytes: 1_048_576,
  recordStacks: true,
  metricsHost: "127.0.0.1",
} as const;

const names = [
  "url",
  "schema",
  "token",
  "queues",
  "lease",
  "heartbeat",
  "pollInterval",
  "maxPollInterval",
  "prefetch",
  "minDemand",
  "reapInterval",
  "sweepInterval",
  "drainTimeout",
  "maxStepDuration",
  "limits",
  "schedules",
  "maxPayloadBytes",
  "metrics",
  "recordStacks",
  "logger",
] as const;

/** `what` is the function that takes them. */
export function checkServe(definitions: unknown, options: unknown, what = "serve"): ServeSettings {
  const given = checkOptions(options, names, `the options of ${what}`);
  const served = checkDefinitions(definitions, what);
  const leaseMs = atLeast(given.lease ?? defaults.lease, "lease", 1_000, shortLease);
  const heartbeatMs = atLeast(given.heartbeat ?? defaults.heartbeat, "heartbeat", 10);
  if (heartbeatMs * 3 > leaseMs) {
    throw new InvalidOption(
      `heartbeat is ${heartbeatMs} ms and lease ${leaseMs} ms; heartbeat must be at most a third of the lease, so that two may fail`,
    );
  }
  const pollMs = atLeast(given.pollInterval ?? defaults.pollInterval, "pollInterval", 1);
  const { sweepInterval = defaults.sweepInterval, maxStepDuration } = given;
  return {
    definitions: served,
    schema: checkSchemaName(given.schema),
    queues: checkQueues(given.queues, served),
    leaseMs,
    heartbeatMs,
    pollMs,
    maxPollMs: Math.max(
      pollMs,
      atLeast(given.maxPollInterval ?? defaults.maxPollInterval, "maxPollInterval", 1),
    ),
    prefetch: checkInteger(given.prefetch ?? defaults.prefetch, "prefetch", { min: 0, max: 10_000 }),
    minDemand: checkInteger(given.minDemand ?? defaults.minDemand, "minDemand", { min: 1, max: 10_000 }),
    reapMs: atLeast(given.reapInterval ?? defaults.reapInterval, "reapInterval", 10),
    sweepMs: sweepInterval === false ? null : atLeast(sweepInterval, "sweepInterval", 10),
    drainMs: atLeast(given.drainTimeout ?? defaults.drainTimeout, "drainTimeout", 0),
    maxStepMs: maxStepDuration === undefined ? null : atLeast(maxStepDuration, "maxStepDuration", 1),
    limits: checkLimits(given.limits),
    schedules: checkDeclared(given.schedules),
    maxPayloadBytes: checkMaxPayload(given.maxPayloadBytes),
    metrics: checkMetrics(given.metrics ?? true),
    recordStacks: checkBoolean(given.recordStacks ?? defaults.recordStacks, "recordStacks"),
    logger: checkLogger(given.logger),
  };
}

function checkMetrics(given: unknown): MetricsSettings | null {
  if (given === false) return null;
  const {
    port,
    host,
    database = false,
  } = checkOptions(given === true ? {} : given, ["port", "host", "database"], "the option metrics");
  return {
    port: port === undefined ? null : checkInteger(port, "metrics.port", { min: 0, max: 65_535 }),
    host: checkString(host ?? defaults.metricsHost, "metrics.host", { maxBytes: 255 }),
    database: checkBoolean(database, "metrics.database"),
  };
}

function checkBoolean(given: unknown, what: string): boolean {
  if (typeof given === "boolean") return given;
  throw new InvalidOption(`${what} must be true or false, not ${show(given)}`);
}

/** The name of the schema: any that PostgreSQL allows. */
export function checkSchemaName(given: unknown): string {
  const name = checkString(given ?? defaults.schema, "schema", { maxBytes: 63 });
  if (!/^(pg_|\$user$)/.test(name)) return name;
  throw new InvalidOption(`schema must not be "${name}": PostgreSQL reserves such names; choose another`);
}

/** The largest input, state or result: at most as many bytes as one claim may answer. */
export function checkMaxPayload(given: unknown): number {
  const { maxPayloadBytes } = defaults;
  return checkInteger(given ?? maxPayloadBytes, "maxPayloadBytes", { min: 1_024, max: 16 * maxPayloadBytes });
}

/** A logger with the four methods that Pawl calls; the console's if none is given. */
export function checkLogger(given: unknown): Logger {
  if (given === undefined) return consoleLogger;
  for (const level of ["debug", "info", "warn", "error"] as const) {
    checkFunction(isObject(given) ? given[level] : undefined, `logger.${level}`);
  }
  return given as Logger;
}

/** A list of definitions, each name and version once; `what` is the function that takes them. */
export function checkDefinitions(given: unknown, what: string): AnyDefinition[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw new InvalidOption(`${what} takes a list of definitions, at least one, not ${show(given)}`);
  }
  const seen = new Map<string, unknown>();
  for (const item of given as unknown[]) {
    if (!isDefinition(item)) {
      throw new InvalidOption(
        `${what} takes definitions made by job(…), machine(…) or workflow(…), not ${show(item)}`,
      );
    }
    const key = `${item.name}@${item.version}`;
    if (seen.has(key)) {
      throw new InvalidOption(`${what} got ${key} twice; give one of them another version or name`);
    }
    seen.set(key, item);
  }
  return given as AnyDefinition[];
}

function checkQueues(given: unknown, served: readonly AnyDefinition[]): ReadonlyMap<string, number> {
  const needed = new Set(served.map((definition) => definition.queue));
  if (given === undefined) return new Map([...needed].map((queue) => [queue, defaults.concurrency]));
  if (!isObject(given)) {
    throw new InvalidOption(`queues must be an object such as { default: 10 }, not ${show(given)}`);
  }
  const queues = new Map(
    Object.entries(given).map(([queue, concurrency]) => [
      // The queues of definitions are checked already, and Pawl's own have reserved names.
      needed.has(queue) ? queue : checkName("queue", queue),
      checkInteger(concurrency, `the concurrency of queue "${queue}"`, { min: 1, max: 10_000 }),
    ]),
  );
  for (const definition of served) {
    if (queues.has(definition.queue)) continue;
    throw new InvalidOption(
      `${definition.name}@${definition.version} runs on queue "${definition.queue}", which the option queues does not list; ` +
        `if given, it is the whole list: add ${definition.queue}: ${defaults.concurrency}`,
    );
  }
  return queues;
}

/** The longest delay of a timer; Node fires a longer one at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Why a lease must be that long. */
const shortLease =
  "a shorter lease expires, with all claims of the worker, whenever the machine, the network or the database is busy for a moment";

function atLeast(value: unknown, what: string, minMs: number, why?: string): number {
  const ms = toMilliseconds(value, what);
  if (ms >= minMs && ms <= maxTimerMs) return ms;
  const reason = why === undefined || ms > maxTimerMs ? "" : `: ${why}`;
  throw new InvalidOption(`${what} must be from ${minMs} ms to 24 days, not ${show(value)}${reason}`);
}
