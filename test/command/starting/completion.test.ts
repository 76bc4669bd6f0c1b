import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { completionScript, shells } from "../../../packages/server/dist/command/completion/scripts.js";
import { commandTable } from "../../../packages/server/dist/command/completion/table.js";
import { createProgram } from "../../../packages/server/dist/command/program.js";
import { openShell } from "../../../packages/server/dist/command/terminal/shell.js";
import { pawl } from "../pawl.js";

const table = commandTable(createProgram({ shell: openShell(process), code: 0 }));
const directory = mkdtempSync(join(tmpdir(), "pawl-completion-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
writeFileSync(join(directory, "definitions.ts"), "");
writeFileSync(join(directory, "two words.ts"), "");

/** What bash offers when somebody presses Tab after these words; the last one is begun. */
function complete(...words: string[]): string[] {
  const script = `${completionScript("bash", table)}
COMP_WORDS=(pawl "$@"); COMP_CWORD=$#
_pawl
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync("bash", ["--norc", "-c", script, "bash", ...words], {
    cwd: directory,
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([0, ""]);
  return stdout.split("\n").filter((line) => line !== "");
}

describe("pawl completion bash, at the Tab key", () => {
  it.each([
    ["commands", ["ru"], ["runs"]],
    ["commands of a group", ["runs", "re"], ["resume", "rerun"]],
    ["options", ["runs", "list", "--st"], ["--status"]],
    ["options after values", ["runs", "list", "--name", "runs", "--pa"], ["--paused", "--parent"]],
    ["values of an option", ["runs", "list", "--status", "c"], ["completed", "cancelled"]],
    ["values after an equals sign", ["runs", "list", "--status", "=", "fai"], ["failed"]],
    ["values of an argument", ["runs", "bulk", "re"], ["rerun", "resume"]],
    ["files of an option", ["dev", "--watch", "d"], ["definitions.ts"]],
    ["files with spaces of an argument", ["check", "two"], ["two words.ts"]],
    ["nothing for free text", ["runs", "list", "--name", ""], []],
    ["nothing for a command that does not exist", ["nothing", "--st"], []],
  ])("offers %s", (_what, words, offered) => {
    expect(complete(...words)).toEqual(offered);
  });

  it("offers every command and every option of the program", () => {
    expect(table.length).toBeGreaterThan(30);
    expect(complete("")).toEqual(table[0]?.commands.map(({ name }) => name));
    const { options = [] } = table.find(({ path }) => path.join(" ") === "runs start") ?? {};
    expect(complete("runs", "start", "-").toSorted()).toEqual(
      options.flatMap(({ flags }) => flags).toSorted(),
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

  it.each([
    ["bash", "bash"],
    ["zsh", "zsh"],
    ["fish", "fish"],
  ] as const)("the script for %s is correct syntax, if the shell is there to ask", (shell, program) => {
    const file = join(directory, `pawl.${shell}`);
    writeFileSync(file, completionScript(shell, table));
    const { error, stderr } = spawnSync(program, ["-n", file], { encoding: "utf8" });
    if (error !== undefined && "code" in error && error.code === "ENOENT") return;
    expect(stderr).toBe("");
  });
});
