import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, pages, readPage, root } from "./pages.js";
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

  it.each(pages)("every link of %s leads somewhere", (page) => {
    const targets = [...readPage(page).matchAll(/\]\(([^)#\s]*)(#[\w-]+)?\)/g)].filter(
      ([, path = ""]) => !path.startsWith("http"),
    );
    for (const [link, path = "", anchor] of targets) {
      const file = path === "" ? page : join(dirname(page), path);
      expect(existsSync(join(root, file)), link).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(file), link).toContain(anchor);
    }
  });
});

function anchorsOf(page: string): string[] {
  return [...readPage(page).matchAll(/^#+ (.*)$/gm)].map(
    ([, heading = ""]) =>
      `#${heading
        .toLowerCase()
        .replaceAll(/[^\w -]/g, "")
        .replaceAll(" ", "-")}`,
  );
}
