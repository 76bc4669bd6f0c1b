/**
 * The options of `startLocalPostgres`, their defaults and their checks. A wrong option is refused
 * here, before any process starts, with the given value and the rule.
 */
import { inspect } from "node:util";
import { LocalPostgresError } from "./errors.js";

export interface LocalPostgresOptions {
  /**
   * A persistent data directory: created when missing, shared by every process that names it. Left
   * out: a throw-away directory, deleted when the server ends.
   */
  directory?: string;
  /**
   * Listen on 127.0.0.1 at this port, protected by a password in the URL. Left out: only on a
   * private unix socket.
   */
  port?: number | "free";
  /** The database of the URL; created when missing. Default `"pawl"`. */
  database?: string;
  /**
   * Settings of postgresql.conf, for example `{ fsync: "off" }`. They win over those in the data
   * directory.
   */
  settings?: Record<string, string | number | boolean>;
}

/** Options after validation: settings are text, as PostgreSQL takes them. */
export interface ValidOptions {
  directory: string | undefined;
  port: number | "free" | undefined;
  database: string;
  settings: Record<string, string>;
}

export const defaults = { database: "pawl" } as const;

const allowedOptions = ["directory", "port", "database", "settings"];

/** These describe the address and the identity of the server, which this package guarantees. */
const reservedSettings = new Set([
  "config_file",
  "data_directory",
  "external_pid_file",
  "hba_file",
  "ident_file",
  "listen_addresses",
  "pawl.directory",
  "port",
  "unix_socket_directories",
  "unix_socket_permissions",
  "unix_socket_group",
]);

export function validateOptions(options: unknown): ValidOptions {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw invalid(`options must be an object, got ${show(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!allowedOptions.includes(name)) {
      throw invalid(`unknown option ${show(name)}; allowed are ${allowedOptions.join(", ")}`);
    }
  }
  const given: { [Name in keyof LocalPostgresOptions]: unknown } = options;
  return {
    directory: validateDirectory(given.directory),
    port: validatePort(given.port),
    database: validateDatabase(given.database ?? defaults.database),
    settings: validateSettings(given.settings ?? {}),
  };
}

function validateDirectory(directory: unknown): string | undefined {
  if (directory === undefined) return undefined;
  if (typeof directory !== "string" || directory === "" || directory.includes("\0")) {
    throw invalid(`directory must be a path, got ${show(directory)}; leave it out for a throw-away server`);
  }
  return directory;
}

function validatePort(port: unknown): number | "free" | undefined {
  if (port === undefined || port === "free") return port;
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw invalid(`port must be a whole number from 1 to 65535 or "free", got ${show(port)}`);
  }
  return port;
}

function validateDatabase(database: unknown): string {
  const bytes = typeof database === "string" ? Buffer.byteLength(database) : 0;
  if (typeof database !== "string" || bytes < 1 || bytes > 63 || database.includes("\0")) {
    throw invalid(`database must be a name of 1 to 63 bytes, got ${show(database)}`);
  }
  return database;
}

function validateSettings(settings: unknown): Record<string, string> {
  if (typeof settings !== "object" || settings === null || Array.isArray(settings)) {
    throw invalid(`settings must be an object such as { fsync: "off" }, got ${show(settings)}`);
  }
  const valid: Record<string, string> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/i.test(name)) {
      throw invalid(`${show(name)} is not the name of a PostgreSQL setting`);
    }
    const lowered = name.toLowerCase();
    if (reservedSettings.has(lowered)) {
      throw invalid(`settings may not contain ${lowered}: the options \`directory\` and \`port\` decide it`);
    }
    valid[lowered] = settingText(name, value);
  }
  return valid;
}

function settingText(name: string, value: unknown): string {
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (typeof value === "string" && !value.includes("\0")) return value;
  throw invalid(`settings.${name} must be a string, a number or a boolean, got ${show(value)}`);
}

function show(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value)
    : inspect(value, { depth: 1, breakLength: Infinity });
}

export function invalid(message: string): LocalPostgresError {
  return new LocalPostgresError("InvalidOption", `startLocalPostgres: ${message}`);
}
