/**
 * Local times of an IANA time zone, by the rules that Node ships (`Intl`). A local time is written
 * as the milliseconds that the same wall clock would have in UTC. Pure. Used by `cron.ts`.
 */

import { InvalidOption } from "../values/errors.js";
import { suggest } from "../values/options.js";
import { show } from "../values/show.js";

const dayMs = 86_400_000;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Checks that it is an IANA name, such as "Europe/Berlin" or "UTC". */
export function checkTimeZone(given: unknown): string {
  // Node also knows offsets such as "+02:00", which have no rules for daylight saving time.
  if (typeof given === "string" && /^[A-Za-z][A-Za-z0-9_+/-]*$/.test(given)) {
    try {
      formatOf(given);
      return given;
    } catch {
      // Not a time zone: refused below.
    }
  }
  throw new InvalidOption(
    `timeZone must be an IANA name such as "Europe/Berlin", "America/New_York" or "UTC", not ${show(given)}` +
      (typeof given === "string" ? suggest(given, Intl.supportedValuesOf("timeZone")) : ""),
  );
}

/** The wall clock of the zone at this moment. */
export function localTimeAt(moment: number, timeZone: string): number {
  if (timeZone === "UTC") return moment;
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(moment)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  const milliseconds = ((moment % 1_000) + 1_000) % 1_000;
  return Date.UTC(year, month - 1, day, hour, minute, second) + milliseconds;
}

/**
 * The moment at which the clock of the zone shows this local time. If it shows it twice, the first
 * of the two moments; null if it never does, because the clock was set forward over it.
 */
export function momentOf(local: number, timeZone: string): number | null {
  if (timeZone === "UTC") return local;
  const [before, after] = [local - dayMs, local + dayMs].map((near) => localTimeAt(near, timeZone) - near);
  // The clock is not changed around this time, as on most days.
  if (before === after) return local - before!;
  const moments = [local - before!, local - after!].filter(
    (moment) => localTimeAt(moment, timeZone) === local,
  );
  return moments.length === 0 ? null : Math.min(...moments);
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      calendar: "iso8601",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(timeZone, format);
  }
  return format;
}
