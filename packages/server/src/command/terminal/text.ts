/** Formats values for people: durations, times, colours, JSON. Pure. */

import { relative } from "node:path";
import type { ErrorRecord } from "pawl";
import { values } from "pawl/engine";
import type { Colors, Shell } from "./shell.js";

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** "350ms", "1.5s", "12m", "3h 5m": the two greatest units, rounded down. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 60_000) return `${Number((Math.floor(ms / 100) / 10).toFixed(1))}s`;
  const index = units.findIndex(([, size]) => ms >= size);
  const [unit, size] = units[index]!;
  const [next] = units.slice(index + 1);
  const rest = next === undefined ? 0 : Math.floor((ms % size) / next[1]);
  return `${Math.floor(ms / size)}${unit}${next === undefined || rest === 0 ? "" : ` ${rest}${next[0]}`}`;
}

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

/** Escapes control characters that a terminal would obey: anybody may have put them into a run. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g, (character) =>
    character === "\t" || character === "\n"
      ? " "
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

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
