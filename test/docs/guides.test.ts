import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { blocksOf, pages } from "./pages.js";
import { compile, makeProject, runProgram } from "./program.js";

// A block of TypeScript with a name, followed by a block of text, is a program and what it prints.
const guides = await Promise.all(
  pages.map(async (page) => {
    const blocks = blocksOf(page);
    const programs = blocks.flatMap(({ file, text }, index) => {
      const printed = blocks[index + 1];
      return file === undefined || printed?.language !== "text"
        ? []
        : [{ file, text, printed: printed.text }];
    });
    return { page, programs };
  }),
);
const withPrograms = guides.filter(({ programs }) => programs.length > 0);

describe("the programs of the guides", () => {
  it("are in every guide that says what a run does", () => {
    const ofWorkflows = ["workflows", "steps-and-retries", "events", "determinism", "versioning"];
    const ofRuns = [
      "signals",
      "timers",
      "schedules",
      "children",
      "keys-and-limits",
      "start-options",
      "concurrency-and-fairness",
      "cancellation",
      "why",
      "transactions",
      "queues-and-topics",
      "pausing-and-operating",
      "batch-jobs",
    ];
    const names = [...ofWorkflows, ...ofRuns];
    expect(withPrograms.map(({ page }) => page)).toEqual(
      expect.arrayContaining(names.map((name) => `docs/${name}.md`)),
    );
  });

  describe.each(withPrograms)("of $page", async ({ programs }) => {
    const project = makeProject(Object.fromEntries(programs.map(({ file, text }) => [file, text])));
    const complaints = await compile(project);
    const { url } = await testDatabase();

    it("compile as printed", () => {
      expect(complaints).toBe("");
    });

    it.each(programs)("$file prints what the guide says", async ({ file, printed }) => {
      const { code, stdout, stderr } = await runProgram(file.replace(/\.ts$/, ".js"), {
        cwd: project,
        env: { DATABASE_URL: url },
      });
      expect(stdout, stderr).toBe(printed);
      expect(code).toBe(0);
    });
  });
});
