/**
 * Reads the arguments of commands: JSON as text, in a file or on standard input; numbers, dates.
 */

import { readFileSync } from "node:fs";
import { InvalidArgumentError } from "commander";
import type { Tags } from "pawl";
import { values } from "pawl/engine";
import { UsageError } from "./failure.js";
import type { Shell } from "./shell.js";

/**
 * Reads `'{"a":1}'`, `@file.json`, or `-` for standard input; undefined if nothing was given. Errors
 * call it `what`.
 */
export async function readJson(given: string | undefined, what: string, shell: Shell): Promise<unknown> {
  if (given === undefined) return undefined;
  if (given === "-") return parse(await shell.readStdin(), `${what} on standard input`);
  if (!given.startsWith("@")) return parse(given, what);
  const file = given.slice(1);
  try {
    return parse(readFileSync(file, "utf8"), `${what} in ${file}`);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`cannot read ${what} from the file ${file}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const shown = text.length > 60 ? `${text.slice(0, 59)}…` : text;
    throw new UsageError(
      `${what} must be JSON, such as '{"name":"Ada"}' or '"a text"', not ${shown === "" ? "an empty text" : shown} ` +
        `(${(error as Error).message}); @file.json reads a file, - reads standard input`,
      { cause: error },
    );
  }
}

/** For commander: a whole number. */
export function integer(text: string): number {
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number.");
}

/** For commander: any number. */
export function decimal(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw new InvalidArgumentError("It must be a number.");
}

/** For commander: a port. */
export function portNumber(text: string): number {
  const value = integer(text);
  if (value >= 0 && value <= 65_535) return value;
  throw new InvalidArgumentError("It must be a port from 1 to 65535, or 0 for any free port.");
}

/** For commander: a port that others can be told. */
export function fixedPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("It must be a port from 1 to 65535.");
}

/** For commander: a time, or how long ago it was. */
export function pastDate(text: string): string {
  if (!/^\d+(\.\d+)?(ms|[smhdw])$/.test(text)) return text;
  return new Date(Date.now() - values.toMilliseconds(text, "a duration")).toISOString();
}

/** For commander: `name=value`, added to the tags of earlier flags. */
export function addTag(text: string, earlier: Tags | undefined): Tags {
  const at = text.indexOf("=");
  if (at > 0) return { ...earlier, [text.slice(0, at)]: text.slice(at + 1) };
  throw new InvalidArgumentError("It must be a name and a value, such as customer=42.");
}
