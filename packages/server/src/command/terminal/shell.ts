/**
 * Where a command runs: what it reads and writes, and whether somebody looks at it. On a terminal there are colours, tables cut to its
 * width and times such as "3m ago"; elsewhere plain text with everything in it. `NO_COLOR` takes the colours away, `FORCE_COLOR`
 * writes as on a terminal wherever the output goes.
 */

import { isatty } from "node:tty";
import pc from "picocolors";

export type Colors = ReturnType<typeof pc.createColors>;

export interface Shell {
  readonly colors: Colors;
  /** The same for what goes to standard error. */
  readonly errorColors: Colors;
  /** Whether somebody looks at the output. */
  readonly isTerminal: boolean;
  readonly columns: number;
  print(text: string): void;
  /** To standard error. */
  complain(text: string): void;
  readStdin(): Promise<string>;
}

export function openShell({ env, stdin, stdout, stderr }: NodeJS.Process): Shell {
  const isForced = isSet(env["FORCE_COLOR"]) && env["FORCE_COLOR"] !== "0";
  const isTerminal = isForced || (isatty(stdout.fd) && env["TERM"] !== "dumb");
  const isColored = !isSet(env["NO_COLOR"]);
  // The reader has gone away (`pawl runs list | head -1`): there is nobody to write for.
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
    complain: (text) => void stderr.write(`${text}\n`),
    readStdin: async () => {
      let text = "";
      stdin.setEncoding("utf8");
      for await (const chunk of stdin) text += String(chunk);
      return text;
    },
  };
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== "";
