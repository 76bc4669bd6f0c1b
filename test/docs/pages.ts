/** The pages of the documentation: their code blocks, tables and links. */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** Every page that people wrote, as a path from the root of the repository. The rest is in `docs/api`. */
export const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  ...readdirSync(`${root}docs`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && !name.startsWith("api/"))
    .map((name) => `docs/${name}`)
    .toSorted(),
];

export function readPage(page: string): string {
  return readFileSync(`${root}${page}`, "utf8");
}

export interface Block {
  /** What stands behind the fence: ts, sh, text. */
  readonly language: string;
  /** The name in the first line, if that is a comment such as `// worker.ts`; it is not part of the text. */
  readonly file: string | undefined;
  readonly text: string;
}

/** The code blocks of a page, in order. */
export function blocksOf(page: string): Block[] {
  return [...readPage(page).matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", body = ""]) => {
    const [, file, rest] = /^\/\/ ([\w-]+\.ts)\n(.*)$/s.exec(body) ?? [];
    return { language, file, text: rest ?? body };
  });
}

/** The text of the section with this heading, up to the next heading of any level. */
export function sectionOf(page: string, heading: string): string {
  const text = readPage(page);
  const start = text.search(new RegExp(`^#+ ${heading}$`, "m"));
  if (start === -1) throw new Error(`${page} has no section "${heading}"`);
  const [section = ""] = text.slice(start).split(/\n#+ /, 1);
  return section;
}

/** The words in code style at the beginning of the rows of all tables in a text. */
export function rowNames(text: string): string[] {
  return [...text.matchAll(/^\| `(\w+)` /gm)].map(([, name = ""]) => name);
}
