/**
 * The options of `createServer`: their types and defaults. Refuses unknown names, wrong types and
 * ranges.
 */

import type { Duration, Logger } from "pawl";
import { InvalidOption } from "pawl";
import { check, database as databases, values } from "pawl/engine";
import { checkAuth, type AuthMode } from "./http/auth.js";
import type { DeliverySettings } from "./delivery/delivery.js";
import { checkTargets } from "./delivery/targets.js";

export interface ServerOptions {
  /** The URL of the database. Default: as for `connect`. */
  readonly database?: string | undefined;
  /** The schema of Pawl in the database. Default "pawl". */
  readonly schema?: string | undefined;
  /**
   * Where to listen. Default "127.0.0.1". A host that other machines can reach needs `tokens` or
   * `proxyAuth`.
   */
  readonly host?: string | undefined;
  /** Default 8080; 0: any free port. */
  readonly port?: number | undefined;
  /**
   * The bearer tokens of callers, each `name:scope+scope:secret` or
   * `name:scope+scope:sha256:<hex>`. `names=prefix+prefix:` and `queues=prefix+prefix:` before the
   * secret limit a token to some names and queues. Scopes: start, read, write, worker, admin.
   */
  readonly tokens?: readonly string[] | undefined;
  /**
   * A proxy in front authenticates callers; the server only requires the header `authorization`.
   * Default false.
   */
  readonly proxyAuth?: boolean | undefined;
  /** How many database connections the API and the worker protocol may open, each. Default 10. */
  readonly pool?: number | undefined;
  /** How many HTTP connections may be open. Default 10,000. */
  readonly maxConnections?: number | undefined;
  /** How large an input or payload may be as JSON. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  /** The longest retention of any run. Default: the value stored in the database, 365 at first. */
  readonly maxRetentionDays?: number | undefined;
  /** How often to reclaim runs of dead workers. Default "1s". */
  readonly reapInterval?: Duration | undefined;
  /** How often to delete runs past their retention. Default "5m"; false: never. */
  readonly sweepInterval?: Duration | false | undefined;
  /** Whether this server sends deliveries to subscribed URLs. Default true. */
  readonly deliveries?: boolean | undefined;
  /** How long one attempt of a delivery may take. Default "15s". */
  readonly deliveryTimeout?: Duration | undefined;
  /**
   * Private networks, addresses and host names that deliveries may go to, such as "10.1.0.0/16" and
   * "hooks.internal"; true: all private and loopback addresses. Default: none. Deliveries never go
   * to link-local addresses and metadata services.
   */
  readonly allowPrivateDeliveries?: boolean | readonly string[] | undefined;
  /** How long requests in progress may take when the server closes. Default "10s". */
  readonly drainTimeout?: Duration | undefined;
  /** Whether `/metrics` needs no token; else it needs one with the scope read. Default false. */
  readonly metricsOpen?: boolean | undefined;
  /** Whether to serve the dashboard at `/`. Default true. */
  readonly dashboard?: boolean | undefined;
  /** Default: warnings and errors to the console. */
  readonly logger?: Logger | undefined;
}

export interface ServerSettings {
  readonly database: string | undefined;
  readonly schema: string;
  readonly host: string;
  readonly port: number;
  readonly auth: AuthMode;
  readonly connections: number;
  readonly maxConnections: number;
  readonly maxPayloadBytes: number;
  readonly maxRetentionDays: number | null;
  readonly reapMs: number;
  /** null: this server deletes no runs. */
  readonly sweepMs: number | null;
  /** null: this server sends no deliveries. */
  readonly delivery: DeliverySettings | null;
  readonly drainMs: number;
  readonly metricsOpen: boolean;
  readonly dashboard: boolean;
  readonly logger: Logger;
}

const names = [
  "database",
  "schema",
  "host",
  "port",
  "tokens",
  "proxyAuth",
  "pool",
  "maxConnections",
  "maxPayloadBytes",
  "maxRetentionDays",
  "reapInterval",
  "sweepInterval",
  "deliveries",
  "deliveryTimeout",
  "allowPrivateDeliveries",
  "drainTimeout",
  "metricsOpen",
  "dashboard",
  "logger",
] as const;

const defaults = {
  host: "127.0.0.1",
  port: 8080,
  pool: 10,
  maxConnections: 10_000,
  reapInterval: "1s",
  sweepInterval: "5m",
  deliveryTimeout: "15s",
  drainTimeout: "10s",
};

export function checkServer(options: unknown): ServerSettings {
  const given = check.options(options, names, "the options of createServer");
  const { database, maxRetentionDays, sweepInterval = defaults.sweepInterval, metricsOpen = false } = given;
  if (typeof metricsOpen !== "boolean") {
    throw new InvalidOption(`metricsOpen must be true or false, not ${values.show(metricsOpen)}`);
  }
  const host = check.string(given.host ?? defaults.host, "host", { maxBytes: 255 });
  return {
    database:
      database === undefined ? databases.givenUrl(undefined) : check.databaseUrl(database, "database"),
    schema: check.schemaName(given.schema),
    host,
    port: check.integer(given.port ?? defaults.port, "port", { min: 0, max: 65_535 }),
    auth: checkAuth({ tokens: given.tokens, proxyAuth: given.proxyAuth, host }),
    connections: check.integer(given.pool ?? defaults.pool, "pool", { min: 1, max: 1_000 }),
    maxConnections: check.integer(given.maxConnections ?? defaults.maxConnections, "maxConnections", {
      min: 10,
      max: 1_000_000,
    }),
    maxPayloadBytes: check.maxPayload(given.maxPayloadBytes),
    maxRetentionDays:
      maxRetentionDays === undefined
        ? null
        : check.integer(maxRetentionDays, "maxRetentionDays", { min: 1, max: 36_525 }),
    reapMs: within(given.reapInterval ?? defaults.reapInterval, "reapInterval", 10),
    sweepMs: sweepInterval === false ? null : within(sweepInterval, "sweepInterval", 10),
    delivery: checkBoolean(given.deliveries ?? true, "deliveries")
      ? {
          timeoutMs: within(given.deliveryTimeout ?? defaults.deliveryTimeout, "deliveryTimeout", 1),
          isAllowed: checkTargets(given.allowPrivateDeliveries ?? false),
        }
      : null,
    drainMs: within(given.drainTimeout ?? defaults.drainTimeout, "drainTimeout", 0),
    metricsOpen,
    dashboard: checkBoolean(given.dashboard ?? true, "dashboard"),
    logger: check.logger(given.logger),
  };
}

function checkBoolean(value: unknown, what: string): boolean {
  if (typeof value === "boolean") return value;
  throw new InvalidOption(`${what} must be true or false, not ${values.show(value)}`);
}

/** The longest delay of a timer; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

function within(value: unknown, what: string, minMs: number): number {
  const ms = values.toMilliseconds(value, what);
  if (ms >= minMs && ms <= maxTimerMs) return ms;
  throw new InvalidOption(`${what} must be from ${minMs} ms to 24 days, not ${values.show(value)}`);
}
