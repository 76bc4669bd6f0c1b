import { describe, expect, it } from "vitest";
import { blocksOf, pages } from "./pages.js";
import { compile, makeProject } from "./program.js";

const withCode = pages.filter((page) => blocksOf(page).some(({ language }) => language === "ts"));

describe("the documentation", () => {
  it("has code in its guides", () => {
    expect(withCode).toEqual(
      expect.arrayContaining(["README.md", "docs/quickstart.md", "docs/jobs.md", "docs/machines.md"]),
    );
  });

  it.each(withCode)("every ts block of %s compiles", async (page) => {
    const blocks = blocksOf(page).filter(({ language }) => language === "ts");
    const files = blocks.map(({ file, text }, index) => [file ?? `block-${index + 1}.ts`, text] as const);
    expect(await compile(makeProject(Object.fromEntries(files)))).toBe("");
  });

  it("a block that is wrong does not compile", async () => {
    const text = 'import { job } from "pawl";\njob({ name: "a", run: () => 1, maxAttempt: 3 });\n';
    expect(await compile(makeProject({ "wrong.ts": text }))).toContain("maxAttempt");
  });
});
