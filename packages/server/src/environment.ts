/**
 * Reads the options of the server from environment variables, for `pawl server`. Checks the texts;
 * `createServer` checks the options.
 */

import { InvalidOption } from "pawl";
import { values } from "pawl/engine";
import type { ServerOptions } from "./options.js";
import type { TraceOptions } from "./traces.js";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ReadEnvironment {
  readonly options: ServerOptions;
  /** Where to send traces; null: nowhere. */
  readonly traces: TraceOptions | null;
  /** Variables that are set and have no effect, for the log. */
  readonly warnings: readonly string[];
}

export function readEnvironment(env: Environment): ReadEnvironment {
  const tokens = readList(env, "PAWL_TOKENS");
  const sweepMs = readNumber(env, "PAWL_SWEEPER_INTERVAL_MS", "WORKFLOWS_SWEEPER_INTERVAL_MS");
  const options: ServerOptions = {
    database: read(env, "DATABASE_URL", "PAWL_URL")?.value,
    schema: read(env, "PAWL_SCHEMA")?.value,
    host: read(env, "PAWL_HOST")?.value,
    port: readNumber(env, "PAWL_PORT"),
    tokens,
    proxyAuth: readSwitch(env, "PAWL_PROXY_AUTH"),
    maxRetentionDays: readNumber(env, "PAWL_MAX_RETENTION_DAYS", "WORKFLOWS_MAX_RETENTION_DAYS"),
    sweepInterval: sweepMs === 0 ? false : sweepMs,
    allowPrivateDeliveries: readSwitchOrList(env, "PAWL_DELIVERY_ALLOW_PRIVATE"),
    metricsOpen: readSwitch(env, "PAWL_METRICS_OPEN"),
    dashboard: readDashboard(env),
  };
  const isTraced = readSwitch(env, "OTLP_ENABLED") === true;
  const endpoint = read(env, "OTLP_ENDPOINT")?.value;
  return {
    options,
    traces: isTraced ? { endpoint: endpoint === undefined ? undefined : checkEndpoint(endpoint) } : null,
    warnings:
      endpoint !== undefined && !isTraced
        ? ["OTLP_ENDPOINT is set, but OTLP_ENABLED is not 1: the server sends no traces"]
        : [],
  };
}

/** One option, made of three variables. */
function readDashboard(env: Environment): ServerOptions["dashboard"] {
  const isServed = readSwitch(env, "PAWL_DASHBOARD");
  const readOnly = readSwitch(env, "PAWL_DASHBOARD_READ_ONLY");
  const payloads = readSwitch(env, "PAWL_DASHBOARD_PAYLOADS");
  if (isServed === false || (readOnly === undefined && payloads === undefined)) return isServed;
  return { readOnly, payloads };
}

/** The first of these variables that is set and not empty. */
function read(env: Environment, ...names: readonly string[]): { name: string; value: string } | undefined {
  for (const name of names) {
    const value = env[name]?.trim();
    if (value !== undefined && value !== "") return { name, value };
  }
  return undefined;
}

function readNumber(env: Environment, ...names: readonly string[]): number | undefined {
  const found = read(env, ...names);
  if (found === undefined) return undefined;
  if (/^\d{1,15}$/.test(found.value)) return Number(found.value);
  throw new InvalidOption(`${found.name} must be a whole number, not ${values.show(found.value)}`);
}

function checkEndpoint(value: string): string {
  if (URL.canParse(value) && /^https?:/.test(value)) return value;
  throw new InvalidOption("OTLP_ENDPOINT must be an HTTP URL, such as http://localhost:4318");
}

/** Separated by commas or white space. */
function readList(env: Environment, name: string): string[] | undefined {
  return read(env, name)
    ?.value.split(/[\s,]+/)
    .filter((item) => item !== "");
}

/** 1 or 0, or a list of something else. */
function readSwitchOrList(env: Environment, name: string): boolean | string[] | undefined {
  const value = read(env, name)?.value ?? "";
  return ["", "0", "1", "false", "true"].includes(value) ? readSwitch(env, name) : readList(env, name);
}

function readSwitch(env: Environment, name: string): boolean | undefined {
  const found = read(env, name);
  if (found === undefined) return undefined;
  if (["1", "true"].includes(found.value)) return true;
  if (["0", "false"].includes(found.value)) return false;
  throw new InvalidOption(`${name} must be 1 or 0, not ${values.show(found.value)}`);
}
