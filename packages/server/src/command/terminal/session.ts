/**
 * Makes commands: each has a description, examples in its help, `--debug`, and errors in one line.
 * Used by every file that adds a command.
 */

import { Command } from "commander";
import { type ExitCode, exitCode } from "./failure.js";
import type { Shell } from "./shell.js";

/** One call of `pawl`. */
export interface Session {
  readonly shell: Shell;
  /** The exit code of the process. */
  code: ExitCode;
}

export interface CommandText {
  readonly name: string;
  readonly description: string;
  /** Complete calls: "pawl runs show 64". */
  readonly examples: readonly string[];
}

/** The command `pawl` itself. */
export function newProgram(session: Session, description: string, version: string): Command {
  const program = new Command("pawl");
  withOutput(program, session)
    .description(description)
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .enablePositionalOptions()
    .exitOverride();
  return program;
}

/** A group of commands, such as `runs`. */
export function addGroup(parent: Command, session: Session, text: CommandText): Command {
  return withOutput(parent.command(text.name), session)
    .description(text.description)
    .addHelpText("after", () => examplesOf(text, session));
}

/** A command that does something. */
export function addCommand(parent: Command, session: Session, text: CommandText): Command {
  return addGroup(parent, session, text).option("--debug", "print the stack of an error, and its cause");
}

/** The action of a command: its return value is the exit code. */
export function action<Given extends unknown[]>(
  session: Session,
  act: (...given: Given) => Promise<ExitCode | void>,
): (...given: Given) => Promise<void> {
  return async (...given) => {
    session.code = (await act(...given)) ?? exitCode.ok;
  };
}

function withOutput(command: Command, { shell }: Session): Command {
  return command.configureOutput({
    writeOut: (text) => shell.print(text.trimEnd()),
    writeErr: (text) => shell.printError(text.trimEnd()),
    outputError: (text, write) => write(explain(text, command, shell)),
    getOutHasColors: () => shell.colors.isColorSupported,
    getErrHasColors: () => shell.errorColors.isColorSupported,
  });
}

/** "error: unknown command 'rns'\n(Did you mean runs?)" in one line, with advice. */
function explain(text: string, command: Command, { errorColors }: Shell): string {
  const [problem = "", ...more] = text.trim().split("\n");
  const suggestion = more.join(" ").replace("Did", "did");
  const isEarly = command.commands.length > 0 && problem.includes("unknown option");
  const advice = isEarly
    ? "options follow the whole command, such as: pawl runs list --url …"
    : `see: ${fullName(command)} --help`;
  const words = [problem.replace(/^error: /, "").replace(/\.$/, ""), suggestion].filter(
    (word) => word !== "",
  );
  return `${errorColors.red("pawl:")} ${words.join(" ")}; ${advice}`;
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function examplesOf({ examples }: CommandText, { shell }: Session): string {
  return `\n${shell.colors.bold("Examples:")}\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}
