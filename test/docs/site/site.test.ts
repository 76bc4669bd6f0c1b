/** The order and the links of the documentation, in the repository and on the site. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPage, root } from "../pages.js";

interface Sidebar {
  sidebar(): { text: string; pages: { path: string; title: string }[] }[];
}
const { sidebar } = (await import(join(root, "site/sidebar.js"))) as Sidebar;
const { anchorOf } = (await import(join(root, "site/anchors.js"))) as { anchorOf(heading: string): string };

const inDocs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`);
const others = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "PERFORMANCE.md",
  "bench/README.md",
  "examples/python-worker/README.md",
  "test/README.md",
];
const pages = [...others, ...inDocs.toSorted()];

/** A page without its code blocks, where a `#` is a comment and brackets are code. */
const proseOf = (page: string): string => readPage(page).replaceAll(/^( *)```.*?^\1```$/gms, "");

describe("the sidebar of the site", () => {
  it("has every page of docs/ once", () => {
    const listed = sidebar().flatMap((group) => group.pages.map(({ path }) => path));
    expect(listed.filter((path) => path.startsWith("docs/")).toSorted()).toEqual(inDocs.toSorted());
  });

  it("gives no two pages of a group the same title", () => {
    for (const group of sidebar()) {
      const titles = group.pages.map(({ title }) => title);
      expect(titles).toEqual([...new Set(titles)]);
    }
  });
});

describe("the links of the documentation", () => {
  it.each(pages)("every link of %s leads to a file, and to a heading of it", (page) => {
    const links = [...proseOf(page).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    const dead = links.filter(([, path = "", anchor]) => {
      const file = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(root, file)) || statSync(join(root, file)).isDirectory()) return true;
      return anchor !== undefined && !anchorsOf(file).has(anchor);
    });
    expect(dead.map(([link]) => link)).toEqual([]);
  });

  it("a heading that comes twice has two anchors", () => {
    expect(anchorsIn("# `pawl init [directory]`\n\n## When …\n\n## When …\n")).toEqual(
      new Set(["pawl-init-directory", "when-", "when--1"]),
    );
  });
});

const known = new Map<string, Set<string>>();
function anchorsOf(page: string): Set<string> {
  const anchors = known.get(page) ?? anchorsIn(proseOf(page));
  known.set(page, anchors);
  return anchors;
}

function anchorsIn(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#+ (.*)$/gm)) {
    // The text of a link, without its address.
    const anchor = anchorOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
    let unique = anchor;
    for (let n = 1; anchors.has(unique); n += 1) unique = `${anchor}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}
