/** Formats values for people: durations, times, colours, JSON. Pure. */

import { relative } from "node:path";
import type { ErrorRecord } from "pawl";
import { values } from "pawl/engine";
import { duration, printable } from "../../doctor/text.js";
import type { Colors, Shell } from "./shell.js";

export { duration, plural, printable } from "../../doctor/text.js";

/** On a terminal how long ago or how long until then; elsewhere the time itself. */
export function moment(date: Date | null, shell: Shell, now = Date.now()): string {
  if (date === null) return "";
  if (!shell.isTerminal) return date.toISOString();
  const ms = now - date.getTime();
  return ms >= 0 ? `${duration(ms)} ago` : `in ${duration(-ms)}`;
}

/** Status or phase in its colour. */
export function state(word: string, colors: Colors): string {
  const painters: Partial<Record<string, (text: string) => string>> = {
    completed: colors.green,
    done: colors.green,
    failed: colors.red,
    cancelled: colors.yellow,
    running: colors.cyan,
    executing: colors.cyan,
    pending: colors.cyan,
  };
  return painters[word]?.(word) ?? word;
}

export function describeError(error: ErrorRecord | null): string {
  if (error === null) return "";
  const { name, message, step } = error;
  return printable(`${name}: ${message}${step === undefined ? "" : ` (step "${step}")`}`);
}

/** An error with its code, stack and causes, on several lines. */
export function errorBlock(error: ErrorRecord | null): string {
  if (error === null) return "";
  const [first = "", ...lines] = values.errorLines(error);
  const where = error.step === undefined ? "" : ` (step "${error.step}")`;
  return [`${first}${where}`, ...lines].map(printable).join("\n");
}

/** JSON in one line, safe for a terminal. */
export const compactJson = (value: unknown): string => printable(JSON.stringify(value));

/** JSON on several lines, safe for a terminal. */
export const prettyJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).split("\n").map(printable).join("\n");

/** A path as the user would write it. */
export function shortPath(file: string): string {
  const short = relative(process.cwd(), file);
  return short.startsWith("..") ? file : short;
}

/** Tags by name, as the flags of a start write them: `customer=42 plan=pro`. */
export function showTags(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}
