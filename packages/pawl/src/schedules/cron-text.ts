/**
 * Checks the form of a cron expression, without its meaning. Needs no library, so clients in browsers
 * use it too; `cron.ts` checks the rest where the ticks are computed.
 */

import { InvalidOption } from "../values/errors.js";
import { show } from "../values/show.js";

const shortcuts = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

export function checkCron(given: unknown): string {
  if (typeof given !== "string") throw wrongCron(given, "it is not a string");
  const cron = given.trim();
  if (cron.startsWith("@")) {
    if (shortcuts.includes(cron.toLowerCase())) return cron;
    throw wrongCron(given, `there is no such shortcut; they are ${shortcuts.join(", ")}`);
  }
  const fields = cron === "" ? 0 : cron.split(/\s+/).length;
  if (fields === 5 || fields === 6) return cron;
  throw wrongCron(
    given,
    `it has ${fields} ${fields === 1 ? "field" : "fields"}, and it must have five or six`,
  );
}

export function wrongCron(given: unknown, reason: string): InvalidOption {
  return new InvalidOption(
    `cron must be a cron expression such as "0 3 * * *" (minute, hour, day of month, month, day of week; ` +
      `with seconds first if it has six fields) or a shortcut such as "@daily", not ${show(given)}: ${reason}`,
  );
}
