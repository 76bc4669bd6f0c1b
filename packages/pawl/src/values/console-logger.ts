/**
 * The default logger: writes warnings and errors to standard error and drops the rest. Pawl passes
 * no payload to any logger. `connect` and `serve` use it if no logger is given.
 */

import { errorLines, readErrorRecord } from "./error-record.js";
import type { Logger, LogMethod } from "./logger.js";
import { isObject } from "./options.js";

const silent: LogMethod = () => {};

const print: LogMethod = (given: object | string, message?: string) => {
  if (typeof given === "string") {
    console.error(given);
    return;
  }
  const { err, ...details } = given as { err?: unknown };
  const rest = Object.keys(details).length === 0 ? "" : ` ${JSON.stringify(details)}`;
  if (err instanceof Error || !isObject(err)) {
    console.error(`${message ?? ""}${err instanceof Error ? `: ${err.message}` : ""}${rest}`);
    return;
  }
  // The record of an error of user code: its stack and causes follow.
  const [reason, ...lines] = errorLines(readErrorRecord(err));
  console.error([`${message ?? ""}: ${reason}${rest}`, ...lines].join("\n"));
};

export const consoleLogger: Logger = { debug: silent, info: silent, warn: print, error: print };
