/**
 * The default logger: writes warnings and errors to standard error and drops the rest. Pawl passes
 * no payload to any logger. `connect` and `serve` use it if no logger is given.
 */

import type { Logger, LogMethod } from "./logger.js";

const silent: LogMethod = () => {};

const print: LogMethod = (given: object | string, message?: string) => {
  if (typeof given === "string") {
    console.error(given);
    return;
  }
  const { err, ...details } = given as { err?: unknown };
  const reason = err instanceof Error ? `: ${err.message}` : "";
  const rest = Object.keys(details).length === 0 ? "" : ` ${JSON.stringify(details)}`;
  console.error(`${message ?? ""}${reason}${rest}`);
};

export const consoleLogger: Logger = { debug: silent, info: silent, warn: print, error: print };
