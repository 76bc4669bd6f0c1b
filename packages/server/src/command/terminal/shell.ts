/**
 * Standard input and output of a command, and whether the output is a terminal. On a terminal
 * commands print colours, tables cut to its width and times such as "3m ago"; elsewhere complete
 * plain text. `NO_COLOR` removes the colours, `FORCE_COLOR` prints as on a terminal, wherever the
 * output goes.
 */

import { isatty } from "node:tty";
import pc from "picocolors";

export type Colors = ReturnType<typeof pc.createColors>;

export interface Shell {
  readonly colors: Colors;
  /** The same for standard error. */
  readonly errorColors: Colors;
  /** Whether the output is a terminal. */
  readonly isTerminal: boolean;
  readonly columns: number;
  print(text: string): void;
  /** To standard error. */
  printError(text: string): void;
  readStdin(): Promise<string>;
}

export function openShell({ env, stdin, stdout, stderr }: NodeJS.Process): Shell {
  const isForced = isSet(env["FORCE_COLOR"]) && env["FORCE_COLOR"] !== "0";
  const isTerminal = isForced || (isatty(stdout.fd) && env["TERM"] !== "dumb");
  const isColored = !isSet(env["NO_COLOR"]);
  // The reader has closed the pipe (`pawl runs list | head -1`).
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  return {
    colors: pc.createColors(isColored && isTerminal),
    errorColors: pc.createColors(isColored && (isForced || isatty(stderr.fd))),
    isTerminal,
    columns: stdout.columns ?? 120,
    print: (text) => void stdout.write(`${text}\n`),
    printError: (text) => void stderr.write(`${text}\n`),
    readStdin: async () => {
      let text = "";
      stdin.setEncoding("utf8");
      for await (const chunk of stdin) text += String(chunk);
      return text;
    },
  };
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== "";
