/** The completion of `pawl` in the shells themselves: what each offers when somebody presses Tab. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  completionScript,
  type ShellName,
  shells,
} from "../../../packages/server/dist/command/completion/scripts.js";
import { commandTable } from "../../../packages/server/dist/command/completion/table.js";
import { createProgram } from "../../../packages/server/dist/command/program.js";
import { openShell } from "../../../packages/server/dist/command/terminal/shell.js";
import { pawl } from "../pawl.js";

const table = commandTable(createProgram({ shell: openShell(process), code: 0 }));
const directory = mkdtempSync(join(tmpdir(), "pawl-completion-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
writeFileSync(join(directory, "definitions.ts"), "");
writeFileSync(join(directory, "two words.ts"), "");

const shellTests = {
  bash: {
    prepare: () => {},
    /** Bash has split the line, with an equals sign as a word of its own. */
    offered: (line: string): string[] => {
      const script = `source "$1"
COMP_WORDS=("\${@:2}"); COMP_CWORD=$(($# - 2))
_pawl
printf '%s\\n' "\${COMPREPLY[@]}"`;
      const words = line.split(/ |(?<==)|(?==)/);
      return ask("bash", ["--norc", "-c", script, "bash", scriptOf("bash"), ...words]);
    },
  },
  zsh: {
    /** An interactive zsh that notes in a file that it reads keys, and in another what it offers. */
    prepare: () =>
      writeFileSync(
        join(directory, ".zshrc"),
        `autoload -Uz compinit; compinit -D -u
source ${scriptOf("zsh")}
zle-line-init() { : >> $READY }
zle -N zle-line-init
compadd() {
  local -a hits
  builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- "\${(@Q)hits}" >> $OFFERED
  builtin compadd "$@"
}
`,
      ),
    /** Types the line and Tab on a terminal, then removes the line and leaves. */
    offered: (line: string): string[] => {
      const own = mkdtempSync(join(directory, ".zsh-"));
      const [READY, OFFERED] = [join(own, "ready"), join(own, "offered")];
      writeFileSync(OFFERED, "");
      const script = `zmodload zsh/zpty
zpty terminal zsh -d -i
until [[ -e $READY ]]; do sleep 0.02; done
zpty -w -n terminal "$1"$'\\t\\x15exit\\n'
while zpty -r terminal text; do :; done`;
      ask("zsh", ["-f", "-c", script, "zsh", line], { READY, OFFERED, ZDOTDIR: directory });
      // Files are added once to look and once to offer.
      return [...new Set(linesOf(readFileSync(OFFERED, "utf8")))];
    },
  },
  fish: {
    prepare: () => {},
    offered: (line: string): string[] =>
      ask("fish", ["--no-config", "-c", "source $argv[1]; complete -C $argv[2]", scriptOf("fish"), line]).map(
        // The whole word, and a description behind a tab.
        (offer) => offer.replace(/\t.*$/, "").replace(/^--\w+=/, ""),
      ),
  },
};

const linesOf = (text: string): string[] => text.split("\n").filter((each) => each !== "");

function scriptOf(shell: ShellName): string {
  const file = join(directory, `.pawl.${shell}`);
  writeFileSync(file, completionScript(shell, table));
  return file;
}

/** What a shell prints; it must print no complaint. */
function ask(shell: ShellName, args: readonly string[], env: Record<string, string> = {}): string[] {
  const { stdout, stderr, status } = spawnSync(shell, args, {
    cwd: directory,
    encoding: "utf8",
    env: { ...process.env, HOME: directory, ...env },
    timeout: 60_000,
  });
  expect([status, stderr]).toEqual([0, ""]);
  return linesOf(stdout);
}

const missing = shells.filter((shell) => spawnSync(shell, ["-c", "true"]).error !== undefined);
if (missing.length > 0) {
  const names = missing.join(" and ");
  console.log(`The completion for ${names} is not tested: not installed here (apt-get install zsh fish).`);
}

describe.each(shells)("pawl completion %s, at the Tab key", (shell) => {
  const { prepare, offered } = shellTests[shell];
  beforeAll(prepare);
  const isMissing = missing.includes(shell);

  it.skipIf(isMissing).each([
    ["commands", "ru", ["runs"]],
    ["commands of a group", "runs re", ["resume", "rerun"]],
    ["options", "runs list --st", ["--status"]],
    ["options after values", "runs list --name runs --pa", ["--paused", "--parent"]],
    ["values of an option", "runs list --status c", ["completed", "cancelled"]],
    ["values after an equals sign", "runs list --status=fai", ["failed"]],
    ["values of an argument", "runs bulk re", ["rerun", "resume"]],
    ["files of an option", "dev --watch d", ["definitions.ts"]],
    ["files with spaces of an argument", "check two", ["two words.ts"]],
    ["nothing for free text", "runs list --name ", []],
    ["nothing for a command that does not exist", "nothing --st", []],
  ])("offers %s", (_what, line, expected) => {
    expect(offered(`pawl ${line}`).toSorted()).toEqual(expected.toSorted());
  });

  it.skipIf(isMissing)("offers every command and every option of the program", () => {
    expect(table.length).toBeGreaterThan(30);
    expect(offered("pawl ").toSorted()).toEqual(table[0]?.commands.map(({ name }) => name).toSorted());
    const { options = [] } = table.find(({ path }) => path.join(" ") === "runs start") ?? {};
    const flags = options.flatMap((option) => option.flags);
    expect(offered("pawl runs start --").toSorted()).toEqual(
      flags.filter((flag) => flag.startsWith("--")).toSorted(),
    );
  });
});

describe("pawl completion", () => {
  it("prints the script of a shell, and refuses others", async () => {
    const { code, stdout } = await pawl(["completion", "zsh"]);
    expect([code, stdout]).toEqual([0, completionScript("zsh", table)]);
    const { code: refused, stderr } = await pawl(["completion", "csh"]);
    expect([refused, stderr]).toEqual([
      2,
      expect.stringContaining("Allowed choices are bash, zsh, fish") as string,
    ]);
  });

  it.each(shells)("the script for %s names every command and option", (shell) => {
    const script = completionScript(shell, table);
    for (const { path, options } of table) {
      for (const word of path) expect(script).toContain(word);
      for (const { flags } of options) {
        for (const flag of flags) expect(script).toContain(shell === "fish" ? flag.replace(/^-+/, "") : flag);
      }
    }
  });
});
