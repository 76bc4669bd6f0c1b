/**
 * The logger when none is given: warnings and errors go to standard error, the rest is silent. Details are reduced to
 * what an operator needs; payloads never reach any logger.
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
