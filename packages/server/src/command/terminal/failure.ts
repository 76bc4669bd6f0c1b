/**
 * Exit codes and errors of commands: 0, 1 for a negative answer (not found, failed, broken,
 * unreachable) and 2 for a wrong call. An error is one line on standard error that says what to do;
 * `--debug` adds the stack. Called by `main.ts`.
 */

import { CommanderError } from "commander";
import { PawlError, Unavailable } from "pawl";
import type { Shell } from "./shell.js";
import { printable } from "./text.js";

export const exitCode = { ok: 0, no: 1, usage: 2 } as const;
export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

/** A wrong call. */
export class UsageError extends Error {}

/** A negative answer with its own message. */
export class Refusal extends Error {}

const usageCodes = new Set(["InvalidOption", "NotSerializable", "NotSupported"]);

export function explainFailure(error: unknown, shell: Shell, debug: boolean): ExitCode {
  // Commander has already printed the error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.usage;
  shell.printError(`${shell.errorColors.red("pawl:")} ${describeFailure(error)}${adviceFor(error)}`);
  if (debug && error instanceof Error) shell.printError(stackOf(error));
  if (error instanceof UsageError) return exitCode.usage;
  return error instanceof PawlError && usageCodes.has(error.code) ? exitCode.usage : exitCode.no;
}

/** The error in one line, with the database that it concerns. */
export function describeFailure(error: unknown): string {
  const message = oneLine(error instanceof Error ? error.message : String(error));
  const database = error instanceof Unavailable ? error.database : undefined;
  return database === undefined ? message : `${message} (database ${printable(database)})`;
}

function adviceFor(error: unknown): string {
  return error instanceof PawlError && error.code === "Unauthorized"
    ? " (give --token, or set PAWL_TOKEN)"
    : "";
}

/**
 * The first line of a message (a log may follow), with advice for the command instead of the
 * library.
 */
export function oneLine(message: string): string {
  const [first = ""] = message.trim().split("\n", 1);
  const line = first
    .replaceAll(/run migrate\(\{ url \}\)( once)?/g, "run: pawl migrate")
    .replaceAll(/run migrate\(\{ url, schema: ("[^"]*") \}\)( once)?/g, "run: pawl migrate --schema $1");
  return printable(line);
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : "";
  return `${error.stack ?? error.message}${cause}`;
}
