/**
 * The options of `createServer` and `createHandler`: their types and defaults. Refuses unknown names,
 * wrong types and ranges.
 */

import type { Duration, Logger } from "pawl";
import { InvalidOption } from "pawl";
import { check, database as databases, values } from "pawl/engine";
import { checkBasePath } from "./embed/base-path.js";
import { checkAuth, checkHandlerAuth, type AuthMode } from "./http/auth.js";
import type { Authorized } from "./http/host-auth.js";
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
  /** Whether to serve the dashboard at `/`, and how. Default true. */
  readonly dashboard?: boolean | DashboardOptions | undefined;
  /** Default: warnings and errors to the console. */
  readonly logger?: Logger | undefined;
}

export interface DashboardOptions {
  /** Hide every button that changes something. The API allows what it always allows. Default false. */
  readonly readOnly?: boolean | undefined;
  /**
   * Whether browsers get inputs, states, outputs, payloads and bodies. False: the server leaves them
   * out of its answers to browsers; programs still get them. Default true.
   */
  readonly payloads?: boolean | undefined;
}

/** The options of `createHandler`. Give `tokens`, `authorize` or `proxyAuth`. */
export interface HandlerOptions<Taken> extends Omit<ServerOptions, "host" | "port" | "maxConnections"> {
  /** The path of your app under which you mount the handler, such as "/admin/pawl". Default "/". */
  readonly basePath?: string | undefined;
  /**
   * Says who sent a request and what they may do, from your own session, cookie or header. Null: the
   * caller is unknown (status 401). Requests of foreign web pages are refused before.
   */
  readonly authorize?: ((request: Taken) => Authorized | Promise<Authorized>) | undefined;
}

/** The settings that a server and a handler share. */
export interface ServiceSettings {
  readonly database: string | undefined;
  readonly schema: string;
  readonly basePath: string;
  readonly auth: AuthMode;
  readonly connections: number;
  /** How many HTTP connections may be open; null: the app of a handler decides. */
  readonly maxConnections: number | null;
  readonly maxPayloadBytes: number;
  readonly maxRetentionDays: number | null;
  readonly reapMs: number;
  /** null: this server deletes no runs. */
  readonly sweepMs: number | null;
  /** null: this server sends no deliveries. */
  readonly delivery: DeliverySettings | null;
  readonly drainMs: number;
  readonly metricsOpen: boolean;
  /** null: no dashboard. */
  readonly dashboard: DashboardSettings | null;
  readonly logger: Logger;
}

interface DashboardSettings {
  readonly readOnly: boolean;
  readonly payloads: boolean;
}

interface ServerSettings extends ServiceSettings {
  readonly host: string;
  readonly port: number;
}

interface HandlerSettings<Taken> extends Omit<ServiceSettings, "auth"> {
  /** How callers are authenticated, or the function of the app that says so. */
  readonly access: AuthMode | ((request: Taken) => Authorized | Promise<Authorized>);
}

const places = ["database", "schema"] as const;
const sharedNames = [
  "tokens",
  "proxyAuth",
  "pool",
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
const serverNames = [...places, "host", "port", "maxConnections", ...sharedNames] as const;
const handlerNames = [...places, "basePath", "authorize", ...sharedNames] as const;

type Given = Readonly<Partial<Record<(typeof places | typeof sharedNames)[number], unknown>>>;

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
  const given = check.options(options, serverNames, "the options of createServer");
  const host = check.string(given.host ?? defaults.host, "host", { maxBytes: 255 });
  return {
    ...checkShared(given),
    host,
    port: check.integer(given.port ?? defaults.port, "port", { min: 0, max: 65_535 }),
    basePath: "",
    auth: checkAuth({ tokens: given.tokens, proxyAuth: given.proxyAuth, host }),
    maxConnections: check.integer(given.maxConnections ?? defaults.maxConnections, "maxConnections", {
      min: 10,
      max: 1_000_000,
    }),
  };
}

export function checkHandler<Taken>(options: HandlerOptions<Taken>): HandlerSettings<Taken> {
  const given = check.options(options, handlerNames, "the options of createHandler");
  const access = checkHandlerAuth(given) ?? options.authorize;
  if (access === undefined) throw new InvalidOption("authorize must be a function");
  return { ...checkShared(given), basePath: checkBasePath(given.basePath), access, maxConnections: null };
}

function checkShared(given: Given): Omit<ServiceSettings, "basePath" | "auth" | "maxConnections"> {
  const { database, maxRetentionDays, sweepInterval = defaults.sweepInterval, metricsOpen = false } = given;
  if (typeof metricsOpen !== "boolean") {
    throw new InvalidOption(`metricsOpen must be true or false, not ${values.show(metricsOpen)}`);
  }
  return {
    database:
      database === undefined ? databases.givenUrl(undefined) : check.databaseUrl(database, "database"),
    schema: check.schemaName(given.schema),
    connections: check.integer(given.pool ?? defaults.pool, "pool", { min: 1, max: 1_000 }),
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
    dashboard: checkDashboard(given.dashboard ?? true),
    logger: check.logger(given.logger),
  };
}

function checkDashboard(given: unknown): DashboardSettings | null {
  if (given === false) return null;
  if (given !== true && (typeof given !== "object" || given === null)) {
    throw new InvalidOption(
      `dashboard must be true, false, or an object with readOnly and payloads, not ${values.show(given)}`,
    );
  }
  const { readOnly = false, payloads = true } =
    given === true ? {} : check.options(given, ["readOnly", "payloads"], "the option dashboard");
  return {
    readOnly: checkBoolean(readOnly, "dashboard.readOnly"),
    payloads: checkBoolean(payloads, "dashboard.payloads"),
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
