/** A logger for a process that somebody looks at: warnings and errors, a line each, to standard error. */

import type { Logger, LogMethod } from "pawl";
import { describeFailure, oneLine } from "./failure.js";
import type { Shell } from "./shell.js";

export function lineLogger(shell: Shell): Logger {
  const print =
    (level: string): LogMethod =>
    (given: object | string, message?: string) => {
      if (typeof given === "string") return shell.complain(`${level} ${oneLine(given)}`);
      const { err, ...details } = given as { err?: unknown };
      const reason = err instanceof Error ? `: ${describeFailure(err)}` : "";
      const rest = Object.keys(details).length === 0 ? "" : ` ${oneLine(JSON.stringify(details))}`;
      shell.complain(`${level} ${message ?? ""}${reason}${rest}`);
    };
  const { yellow, red } = shell.errorColors;
  return { debug() {}, info() {}, warn: print(yellow("warn")), error: print(red("error")) };
}
