/**
 * Reads durations as users write them: a number of milliseconds, or a number with a unit. Inside
 * Pawl every duration is a whole number of milliseconds, made only here. A numeric string without a
 * unit is refused. Called by every option and outcome that takes a duration.
 */

import { InvalidOption } from "./errors.js";
import { show } from "./show.js";

/** Milliseconds, or a number with a unit: `1500`, `"1.5s"`, `"30d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d" | "w"}`;

const second = 1000;
const hour = 3600 * second;
const day = 24 * hour;
const units: Record<string, number> = { ms: 1, s: second, m: 60 * second, h: hour, d: day, w: 7 * day };

// Longer than every real wait, and well below the limit of PostgreSQL's timestamps.
const maxMs = 36_525 * day;

/** A duration in whole milliseconds. `what` names the option in errors: "delay". */
export function toMilliseconds(value: unknown, what: string): number {
  const ms = typeof value === "string" ? parse(value) : typeof value === "number" ? value : Number.NaN;
  if (ms >= 0 && ms <= maxMs) return Math.round(ms);
  const bound = ms > maxMs ? " of at most 100 years" : ms < 0 ? " that is not negative" : "";
  throw new InvalidOption(
    `${what} must be a duration${bound}: milliseconds such as 1500, or a number and one of ` +
      `ms, s, m, h, d, w such as "1.5s" or "30d"; not ${show(value)}`,
  );
}

function parse(text: string): number {
  const match = /^(\d{1,20}(?:\.\d{1,20})?)(ms|[smhdw])$/.exec(text);
  return match === null ? Number.NaN : Number(match[1]) * units[match[2]!]!;
}
