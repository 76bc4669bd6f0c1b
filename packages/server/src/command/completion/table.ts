/**
 * All commands of a program with their options and arguments, as plain data that scripts for shells
 * are made of. Read from the program itself, so a new command or option needs nothing here. Pure.
 */

import type { Argument, Command, Option } from "commander";

export interface CommandRow {
  /** The words after `pawl`, such as `["runs", "list"]`; empty: `pawl` itself. */
  readonly path: readonly string[];
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionRow[];
  /** The values of the first argument: a choice, the path of a file, or unknown. */
  readonly argument: Values;
}

export interface OptionRow {
  /** `--name` and, if there is one, `-n`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined: it takes no value. */
  readonly values: Values | undefined;
}

export type Values =
  | { readonly kind: "any" | "file" }
  | { readonly kind: "choice"; readonly words: readonly string[] };

/** The rows of a command and all commands below it. */
export function commandTable(command: Command, path: readonly string[] = []): CommandRow[] {
  const visible = command.createHelp();
  // `pawl help` stays a word; what groups have of their own would only repeat it.
  const below = visible.visibleCommands(command).filter((one) => path.length === 0 || one.name() !== "help");
  const [argument] = command.registeredArguments;
  const row: CommandRow = {
    path,
    commands: below.map((one) => ({ name: one.name(), description: one.description() })),
    options: visible.visibleOptions(command).map(optionRow),
    argument: argument === undefined ? { kind: "any" } : valuesOf(argument),
  };
  return [row, ...below.flatMap((one) => commandTable(one, [...path, one.name()]))];
}

function optionRow(option: Option): OptionRow {
  const flags = [option.long, option.short].filter((flag) => typeof flag === "string");
  const takesValue = option.required || option.optional;
  return { flags, description: option.description, values: takesValue ? valuesOf(option) : undefined };
}

/** An option or an argument whose value is called `file` or `directory` is the path of one. */
function valuesOf(given: Option | Argument): Values {
  if (given.argChoices !== undefined) return { kind: "choice", words: given.argChoices };
  const name = "flags" in given ? given.flags : given.name();
  return { kind: /\b(file|directory)\b/.test(name) ? "file" : "any" };
}
