import { describe, expect, it } from "vitest";
import { createProgram } from "../../packages/server/dist/command/program.js";
import { openShell } from "../../packages/server/dist/command/terminal/shell.js";
import { startPawl } from "../command/pawl.js";
import { makeProject } from "./program.js";
import { blocksOf, readPage } from "./pages.js";
import { until } from "../support/until.js";

const page = "docs/cli.md";
type Command = ReturnType<typeof createProgram>;
const program = createProgram({ shell: openShell(process), code: 0 });

/** Every command that does something, by its whole name with its arguments. */
function commandsOf(command: Command, path: readonly string[]): [usage: string, command: Command][] {
  const own = [...path, command.name()];
  const names = command.registeredArguments.map((one) =>
    one.required ? `<${one.name()}>` : `[${one.name()}]`,
  );
  const isLeaf = command.options.some(({ long }) => long === "--debug");
  return [
    ...(isLeaf ? [[[...own, ...names].join(" "), command] satisfies [string, Command]] : []),
    ...command.commands.flatMap((one) => commandsOf(one, own)),
  ];
}

const commands = commandsOf(program, []);
const sections = readPage(page).split(/^(?=#+ )/m);
const rowsOf = (text: string): string[] =>
  [...text.matchAll(/^\| `(--[^`]+)` /gm)].map(([, flags = ""]) => flags);
const common = sections.filter((text) => /^## (Where the runs are|Output)\n/.test(text)).flatMap(rowsOf);

describe("docs/cli.md", () => {
  it("has a section for every command, and no other", () => {
    expect(commands.length).toBeGreaterThan(10);
    const documented = [...readPage(page).matchAll(/^### `(.*)`$/gm)].map(([, usage]) => usage);
    expect(documented.toSorted()).toEqual(commands.map(([usage]) => usage).toSorted());
  });

  it.each(commands)("lists every option of %s, and no other, and shows a call", (usage, command) => {
    const section = sections.find((text) => text.startsWith(`### \`${usage}\`\n`)) ?? "";
    const own = command.options.map(({ flags }) => flags).filter((flags) => !common.includes(flags));
    expect(rowsOf(section).toSorted()).toEqual(own.toSorted());
    expect(section).toMatch(/```sh\n.*pawl /);
  });

  it("lists what commands have in common", () => {
    expect(common.toSorted()).toEqual(["--debug", "--schema <name>", "--token <token>", "--url <url>"]);
  });

  it("every command has examples in its help that it would take", () => {
    for (const [usage, command] of commands) {
      let help = "";
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
      const examples = [...help.matchAll(/^ {2}\$ (.*)$/gm)].map(([, example = ""]) => example);
      expect(examples.length, usage).toBeGreaterThan(0);
      const words = usage.split(" ").filter((word) => /^\w/.test(word));
      for (const example of examples) expect(example).toContain(words.join(" "));
      const options = examples.flatMap((example) =>
        [...example.matchAll(/ (--[\w-]+)/g)].map(([, name]) => name),
      );
      const known = commands.flatMap(([, one]) => one.options.map(({ long }) => long));
      for (const option of options) expect(known).toContain(option);
    }
  });

  it("begins with calls that work as printed", async () => {
    const [install, definitions, calls] = blocksOf(page);
    const project = makeProject({ "definitions.ts": definitions?.text ?? "" });
    const [, dev = ""] = install?.text.split("\n") ?? [];
    const started = startPawl([...dev.split(" ").slice(2), "--port", "0"], { cwd: project });
    try {
      await until("it serves", () => started.stdout().includes("Ctrl-C stops everything"), 60_000);
      const [start = "", list = ""] = calls?.text.split("\n") ?? [];
      const words = (line: string): string[] =>
        [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "").slice(2);
      expect(await startPawl(words(start), { cwd: project }).ended).toMatchObject({
        code: 0,
        stdout: '"Hello, Ada!"\n',
      });
      expect((await startPawl(words(list), { cwd: project }).ended).stdout).toContain("greet@1  completed");
    } finally {
      started.process.kill("SIGINT");
      await started.ended;
    }
  });
});
