/**
 * How a command finds the runs: `--url`, else `PAWL_URL`, else `DATABASE_URL`, else the local
 * Postgres that `pawl dev` keeps in `.pawl/postgres`. Only `pawl dev` creates one.
 */

import { existsSync } from "node:fs";
import { type Command, Option } from "commander";
import { connect, type Logger, type Pawl } from "pawl";
import { actingAs } from "pawl/engine";
import { UsageError } from "./failure.js";

export interface ConnectionOptions {
  readonly url?: string;
  readonly schema?: string;
  readonly token?: string;
}

export const localDirectory = ".pawl/postgres";

/** Logs nothing: a command throws its error and prints it once. */
const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** `--url` and `--schema`, for commands that need the database itself. */
export function addDatabaseOptions(command: Command): Command {
  return command
    .optionsGroup("Where the runs are:")
    .option("--url <url>", "the database, postgres://… (or PAWL_URL, DATABASE_URL; else .pawl/postgres)")
    .addOption(schemaOption());
}

const schemaOption = (): Option =>
  new Option("--schema <name>", 'the schema of Pawl in the database (or PAWL_SCHEMA; else "pawl")');

/** `--url`, `--schema` and `--token`, for commands that work on a database and through a server. */
export function addConnectionOptions(command: Command): Command {
  return command
    .optionsGroup("Where the runs are:")
    .option(
      "--url <url>",
      "the database or a server, postgres://… or http://… (or PAWL_URL, DATABASE_URL; else .pawl/postgres)",
    )
    .addOption(schemaOption())
    .option("--token <token>", "bearer token for a server (or PAWL_TOKEN)");
}

/** The schema that was given or is in the environment; undefined: the default. */
export function findSchema(schema: string | undefined): string | undefined {
  return schema ?? (process.env["PAWL_SCHEMA"] || undefined);
}

/** The URL that was given; undefined: the one in the environment, or the local Postgres. */
export function findUrl(url: string | undefined): string | undefined {
  if (url !== undefined || hasUrl()) return url;
  if (existsSync(localDirectory)) return undefined;
  throw new UsageError(
    "no database: give --url, set PAWL_URL or DATABASE_URL, or start a local one in this directory with: pawl dev",
  );
}

/** Whether the environment names a database. */
const hasUrl = (): boolean => Boolean(process.env["PAWL_URL"] || process.env["DATABASE_URL"]);

/**
 * Calls `use` with a client, then closes it. `open`: the `connect` of another copy of the library.
 */
export async function withPawl<T>(
  { url, schema, token }: ConnectionOptions,
  use: (pawl: Pawl) => Promise<T>,
  open = connect,
): Promise<T> {
  const found = findUrl(url);
  const isServer = /^https?:/i.test(found ?? (process.env["PAWL_URL"] || process.env["DATABASE_URL"]) ?? "");
  const pawl = open(found, {
    // A server has its own schema; it refuses `--schema`.
    schema: isServer ? schema : findSchema(schema),
    logger: silent,
    ...(token === undefined ? {} : { token }),
  });
  try {
    return await actingAs({ who: "local", from: "cli" }, () => use(pawl));
  } finally {
    await pawl.close();
  }
}
