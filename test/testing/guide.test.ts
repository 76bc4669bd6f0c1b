import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, inject, it } from "vitest";
import { blocksOf, root, rowNames, sectionOf } from "../docs/pages.js";
import { compile, makeProject, runProgram } from "../docs/program.js";
import { testPawl } from "pawl/testing";

// Every block of the guide is a test file of a user's, for one runner or the other. They share the server of this run.
const blocks = blocksOf("docs/testing.md").filter(({ language }) => language === "ts");
const isForNode = (text: string): boolean => text.includes('from "node:test"');
const files = blocks.map(({ text }, index) => {
  return { name: `${isForNode(text) ? "node" : "vitest"}-${index + 1}.test`, text };
});
const url = inject("databaseUrl");

describe("the tests of docs/testing.md", async () => {
  const project = makeProject(
    Object.fromEntries(
      files.map(({ name, text }) => [
        `${name}.ts`,
        text
          .replaceAll("testPawl({", `testPawl({ url: ${JSON.stringify(url)},`)
          .replaceAll("testPawl()", `testPawl({ url: ${JSON.stringify(url)} })`),
      ]),
    ),
  );
  const complaints = await compile(project);

  it("compile as printed", () => {
    expect(complaints).toBe("");
    expect(files.length).toBeGreaterThan(4);
  });

  it("pass under vitest, in parallel files", { timeout: 240_000 }, async () => {
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const args = [
      "run",
      "--root",
      project,
      "--dir",
      project,
      "vitest-",
      "--exclude",
      "**/*.ts",
      "--testTimeout",
      "30000",
    ];
    const { code, stdout, stderr } = await runProgram(vitest, { cwd: project, args });
    expect(code, stdout + stderr).toBe(0);
    const expected = files.filter(({ name }) => name.startsWith("vitest")).length;
    expect(stripVTControlCharacters(stdout)).toMatch(new RegExp(`Test Files +${expected} passed`));
  });

  it("pass under node:test", async () => {
    const names = files.filter(({ name }) => name.startsWith("node")).map(({ name }) => `${name}.js`);
    expect(names.length).toBeGreaterThan(0);
    const { code, stdout, stderr } = await runProgram("--test", { cwd: project, args: names });
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/pass [1-9]/);
  });
});

describe("docs/testing.md", () => {
  it("lists every option of testPawl and of crashEverywhere, and no other", async () => {
    const wrong = { wrong: true } as object;
    expect(rowNames(sectionOf("docs/testing.md", "Options")).toSorted()).toEqual(
      await allowedBy(() => testPawl(wrong)),
    );
    const t = await testPawl({ url });
    expect(rowNames(sectionOf("docs/testing.md", "A crash at every place")).toSorted()).toEqual(
      await allowedBy(() => t.crashEverywhere({} as never, null as never, wrong as never)),
    );
    const served = await allowedBy(() => t.serve([], wrong));
    const [sentence = ""] =
      /`t\.serve\(definitions, options\)` takes .*?\]/s.exec(sectionOf("docs/testing.md", "Options")) ?? [];
    expect(
      [...sentence.matchAll(/`(\w+)`/g)]
        .map(([, name]) => name)
        .filter((name) => name !== "serve")
        .toSorted(),
    ).toEqual(served);
    await t.close();
  });
});

/** The options that a call allows, as it says itself when it is given a wrong one. */
async function allowedBy(call: () => Promise<unknown>): Promise<string[]> {
  const error = await call().then(
    () => new Error("a wrong option was taken"),
    (thrown: unknown) => thrown as Error,
  );
  return error.message
    .replace(/^.*; allowed: /s, "")
    .split(", ")
    .toSorted();
}
