/** A logger for a terminal: prints warnings and errors to standard error, one line each. */

import type { Logger, LogMethod } from "pawl";
import { describeFailure, oneLine } from "./failure.js";
import type { Shell } from "./shell.js";

export function lineLogger(shell: Shell): Logger {
  const print =
    (level: string): LogMethod =>
    (given: object | string, message?: string) => {
      if (typeof given === "string") return shell.printError(`${level} ${oneLine(given)}`);
      const { err, ...details } = given as { err?: unknown };
      const reason = err instanceof Error ? `: ${describeFailure(err)}` : "";
      const rest = Object.keys(details).length === 0 ? "" : ` ${oneLine(JSON.stringify(details))}`;
      shell.printError(`${level} ${message ?? ""}${reason}${rest}`);
    };
  const { yellow, red } = shell.errorColors;
  return { debug() {}, info() {}, warn: print(yellow("warn")), error: print(red("error")) };
}
