import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Every declaration file that a consumer's compiler reads, from index.d.ts on, and the packages it names. */
function reachable(): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = (url: URL): void => {
    if (files.has(url.href)) return;
    files.add(url.href);
    for (const [, from] of readFileSync(url, "utf8").matchAll(
      /(?<!")\b(?:from|import|module)\s*\(?"([^"]+)"/g,
    )) {
      if (from!.startsWith(".")) visit(new URL(from!.replace(/\.js$/, ".d.ts"), url));
      else packages.add(from!);
    }
  };
  visit(new URL("../dist/index.d.ts", import.meta.url));
  return { files, packages };
}

it("the published types need nothing that is not installed with the package", () => {
  const { files, packages } = reachable();
  expect(files.size).toBeGreaterThan(10);
  expect([...packages]).toEqual(["@standard-schema/spec"]);
});
