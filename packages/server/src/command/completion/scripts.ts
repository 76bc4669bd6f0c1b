/**
 * The scripts that complete `pawl` in bash, zsh and fish, made of the table of commands. A script
 * holds all words, so that Tab starts no process. Pure.
 */

import type { CommandRow, OptionRow, Values } from "./table.js";

export const shells = ["bash", "zsh", "fish"] as const;
export type ShellName = (typeof shells)[number];

export function completionScript(shell: ShellName, table: readonly CommandRow[]): string {
  return { bash, zsh, fish }[shell](table);
}

const keyOf = (path: readonly string[]): string => path.join(" ");
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
const flagsOf = (row: CommandRow): string[] => row.options.flatMap(({ flags }) => flags);

/** The words that may follow a command besides its options. */
const wordsOf = (row: CommandRow): string[] =>
  row.commands.length > 0
    ? row.commands.map(({ name }) => name)
    : row.argument.kind === "choice"
      ? [...row.argument.words]
      : [];

/** The branches of a `case` in bash and zsh: the words, flags and files that may follow a command. */
const wordBranches = (table: readonly CommandRow[]): string =>
  table
    .map((row) => {
      const files = row.argument.kind === "file" ? "; files=yes" : "";
      const next = `next=${quoted(wordsOf(row).join(" "))}; flags=${quoted(flagsOf(row).join(" "))}`;
      return `    ${quoted(keyOf(row.path))}) ${next}${files} ;;`;
    })
    .join("\n");

/** The branches of a `case`: the values of an option of a command. */
const valueBranches = (table: readonly CommandRow[]): string =>
  table
    .flatMap((row) =>
      row.options.flatMap(({ flags, values }) =>
        values === undefined
          ? []
          : flags.map(
              (flag) =>
                `    ${quoted(`${keyOf(row.path)} ${flag}`)}) values=${quoted(valueWords(values))} ;;`,
            ),
      ),
    )
    .join("\n");

/** `@file` and `@any` cannot be words of a choice. */
const valueWords = (values: Values): string =>
  values.kind === "choice" ? values.words.join(" ") : `@${values.kind}`;

const pathsOf = (table: readonly CommandRow[]): string[] =>
  table.filter(({ path }) => path.length > 0).map(({ path }) => keyOf(path));

/**
 * What bash and zsh share: finds the command among the words before the cursor, then sets the words
 * and flags that may follow it, or the values of the option before the cursor.
 */
const lookup = (table: readonly CommandRow[]): string => `_pawl_lookup() {
  local word tried last='' place=''
  next='' flags='' values='' files=''
  for word in "$@"; do
    if [ "$word" = '=' ]; then continue; fi
    last="$word"
    tried="\${place:+$place }$word"
    case "$tried" in
    ${pathsOf(table).map(quoted).join("|")}) place="$tried" ;;
    esac
  done
  case "$place" in
${wordBranches(table)}
  esac
  case "$place $last" in
${valueBranches(table)}
  esac
}`;

function bash(table: readonly CommandRow[]): string {
  return `# Completes pawl in bash. Load it with: source <(pawl completion bash)
${lookup(table)}
_pawl() {
  local current="\${COMP_WORDS[COMP_CWORD]}" next flags values files
  _pawl_lookup "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  if [ "$current" = '=' ]; then current=''; fi
  COMPREPLY=()
  case "$values" in
    @any) return ;;
    @file) files=yes; next='' ;;
    ?*) next="$values"; files='' ;;
    *) case "$current" in -*) next="$flags"; files='' ;; esac ;;
  esac
  COMPREPLY=($(compgen -W "$next" -- "$current"))
  if [ -n "$files" ]; then
    local IFS=$'\\n'
    COMPREPLY+=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _pawl pawl
`;
}

function zsh(table: readonly CommandRow[]): string {
  return `#compdef pawl
# Completes pawl in zsh. Load it with: source <(pawl completion zsh)
${lookup(table)}
_pawl() {
  local current="\${words[CURRENT]}" next flags values files
  local -a before=("\${(@)words[2,CURRENT-1]}")
  if [[ "$current" = --*=* ]]; then
    before+=("\${current%%=*}")
    current="\${current#*=}"
    compset -P '*='
  fi
  _pawl_lookup "\${(@)before}"
  case "$values" in
    @any) return ;;
    @file) files=yes; next='' ;;
    ?*) next="$values"; files='' ;;
    *) case "$current" in -*) next="$flags"; files='' ;; esac ;;
  esac
  compadd -- \${=next}
  if [ -n "$files" ]; then _files; fi
}
if [ "$funcstack[1]" = _pawl ]; then _pawl "$@"; else compdef _pawl pawl; fi
`;
}

function fish(table: readonly CommandRow[]): string {
  const lines = table.flatMap((row) => {
    const when = `-n ${fishQuoted(`_pawl_at ${row.path.map(fishQuoted).join(" ")}`.trimEnd())}`;
    const commands = row.commands.map(
      ({ name, description }) =>
        `complete -c pawl ${when} -a ${fishQuoted(name)} -d ${fishQuoted(description)}`,
    );
    return [
      ...commands,
      ...fishArgument(row, when),
      ...row.options.map((option) => fishOption(option, when)),
    ];
  });
  return `# Completes pawl in fish. Load it with: pawl completion fish | source
set -g _pawl_paths ${pathsOf(table).map(fishQuoted).join(" ")}
function _pawl_at
    set -l key
    set -l given (commandline -opc)
    for word in $given[2..-1]
        set -l tried (string join -- ' ' $key $word)
        if contains -- $tried $_pawl_paths
            set key $tried
        end
    end
    test "$key" = "$argv"
end
complete -c pawl -f
${lines.join("\n")}
`;
}

function fishArgument({ argument, commands }: CommandRow, when: string): string[] {
  if (commands.length > 0 || argument.kind === "any") return [];
  const words = argument.kind === "choice" ? `-a ${fishQuoted(argument.words.join(" "))}` : "-F";
  return [`complete -c pawl ${when} ${words}`];
}

function fishOption({ flags, description, values }: OptionRow, when: string): string {
  const names = flags.map((flag) => (flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const takes = values === undefined ? [] : [fishValues(values)];
  return ["complete -c pawl", when, ...names, ...takes, "-d", fishQuoted(description)].join(" ");
}

const fishValues = (values: Values): string =>
  values.kind === "choice"
    ? `-x -a ${fishQuoted(values.words.join(" "))}`
    : values.kind === "file"
      ? "-r -F"
      : "-x";

const fishQuoted = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`)}'`;
