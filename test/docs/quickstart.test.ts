import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { type Block, blocksOf, root } from "./pages.js";
import { compile, makeProject, runProgram, startProgram } from "./program.js";

const guide = blocksOf("docs/quickstart.md");
const files = Object.fromEntries(
  guide.flatMap(({ file, text }) => (file === undefined ? [] : [[file, text]])),
);
const [firstOutput, secondOutput] = guide
  .filter(({ language }) => language === "text")
  .map(({ text }) => text);

const project = makeProject(files);
const complaints = await compile(project);
const { url } = await testDatabase({ empty: true });
const env = { DATABASE_URL: url };

describe("the quickstart", () => {
  it("compiles as printed", () => {
    expect(complaints).toBe("");
  });

  it("prints the example that is in the repository", () => {
    expect(files["quickstart.ts"]).toBe(readFileSync(join(root, "examples/src/quickstart.ts"), "utf8"));
  });

  it("runs as printed on a local Postgres, and says so the second time", async () => {
    expect(await runProgram("quickstart.js", { cwd: project })).toEqual({
      code: 0,
      stdout: firstOutput,
      stderr: expect.stringContaining("the first attempt always fails") as string,
    });
    expect(await runProgram("quickstart.js", { cwd: project })).toEqual({
      code: 0,
      stdout: secondOutput,
      stderr: expect.stringContaining("the first attempt always fails") as string,
    });
  });

  it("names migrate when the schema is missing", async () => {
    const { code, stderr } = await runProgram("client.js", { cwd: project, env });
    expect(code).toBe(1);
    expect(stderr).toContain("run migrate({ url }) once");
  });

  it("runs as printed on the database of DATABASE_URL, once migrated", async () => {
    expect(await runProgram("migrate.js", { cwd: project, env })).toEqual({
      code: 0,
      stdout: 'schema "pawl": version 0 → 2\n',
      stderr: "",
    });
    expect(await runProgram("quickstart.js", { cwd: project, env })).toEqual({
      code: 0,
      stdout: firstOutput,
      stderr: expect.stringContaining("the first attempt always fails") as string,
    });
    expect(await runProgram("quickstart.js", { cwd: project, env })).toEqual({
      code: 0,
      stdout: secondOutput,
      stderr: expect.stringContaining("the first attempt always fails") as string,
    });
  });

  it("runs as printed with worker and client in different processes, and the worker stops on SIGTERM", async () => {
    const worker = startProgram("worker.js", { cwd: project, env });
    await until("the worker serves", () => worker.stdout() === "serving\n");
    const client = await runProgram("client.js", { cwd: project, env });
    expect(client).toEqual({ code: 0, stdout: "ratchet.png@640\n", stderr: "" });
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toEqual({ code: 0, stdout: "serving\n", stderr: "" });
  });
});

describe("the README", () => {
  it("shows a first workflow that runs as printed", async () => {
    const blocks = blocksOf("README.md");
    const index = blocks.findIndex(({ file }) => file === "hello.ts");
    const [hello, printed] = blocks.slice(index, index + 2) as [Block, Block];
    const directory = makeProject({ "hello.ts": hello.text });
    expect(await compile(directory)).toBe("");
    expect(await runProgram("hello.js", { cwd: directory, env })).toEqual({
      code: 0,
      stdout: printed.text,
      stderr: "",
    });
  });
});
