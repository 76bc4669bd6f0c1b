/**
 * The site over the Markdown of the repository. Addresses mirror its folders, so that the relative
 * links of a page work in both. A link to a file that is no page leads to a copy of that file.
 */

import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { anchorOf } from "../anchors.js";
import { sidebar } from "../sidebar.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** The files that pages link to and that are no pages, as paths from the root. */
const linked = new Set();

/** The address of a page: a README is the index of its folder. */
const addressOf = (path) => `/${path.replace(/(^|\/)README\.md$/, "$1").replace(/\.md$/, "")}`;

export default defineConfig({
  title: "Pawl",
  description: "Durable execution for TypeScript on PostgreSQL",
  lang: "en",
  srcDir: "..",
  srcExclude: [
    "packages/**",
    "examples/!(python-worker)/**",
    "site/**",
    "docker/**",
    "test/!(README.md)",
    "test/*/**",
    "bench/!(README.md)",
    "bench/*/**",
  ],
  outDir: "dist",
  cacheDir: "node_modules/.vitepress-cache",
  cleanUrls: true,
  rewrites: (page) => page.replace(/(^|\/)README\.md$/, "$1index.md"),
  appearance: true,
  markdown: {
    anchor: { slugify: anchorOf },
    config(md) {
      md.core.ruler.push("links-of-the-repository", ({ tokens, env }) => {
        for (const { children } of tokens) {
          for (const token of children ?? []) if (token.type === "link_open") follow(token, env.path);
        }
      });
    },
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Start", link: "/docs/" },
      { text: "Tutorial", link: "/docs/tutorial" },
      { text: "Configuration", link: "/docs/configuration" },
      { text: "Errors", link: "/docs/errors" },
      { text: "FAQ", link: "/docs/faq" },
    ],
    sidebar: sidebar().map(({ text, pages }, index) => ({
      text,
      collapsed: index > 0,
      items: pages.map(({ path, title }) => ({ text: title, link: addressOf(path) })),
    })),
  },
  vite: {
    plugins: [
      { name: "pawl-copies", configureServer: serveCopies },
      // The pages are above the folder that has Vue.
      {
        name: "pawl-vue",
        enforce: "pre",
        resolveId(id, importer, options) {
          if (!/^vue(\/|$)/.test(id) || !importer?.startsWith(root)) return null;
          if (options.ssr) return { id, external: true };
          return this.resolve(id, fileURLToPath(import.meta.url), { ...options, skipSelf: true });
        },
      },
    ],
  },
  buildEnd({ outDir }) {
    for (const path of linked) {
      const copy = join(outDir, nameOfCopy(path));
      mkdirSync(dirname(copy), { recursive: true });
      copyFileSync(root + path, copy);
    }
  },
});

/** Sources as text, because a web server takes a .ts for a film. */
function nameOfCopy(path) {
  return /\.(ts|py|sql)$/.test(path) || !path.includes(".") ? `${path}.txt` : path;
}

/** The copies while you write: `npm run docs:dev`. */
function serveCopies({ middlewares }) {
  middlewares.use((request, response, next) => {
    const path = [...linked].find((one) => `/${nameOfCopy(one)}` === request.url);
    if (path === undefined) return next();
    response.setHeader("content-type", "text/plain; charset=utf-8");
    response.end(readFileSync(root + path));
  });
}

/** Points a link at the page or at the copy of a file. `page`: the file with the link. */
function follow(token, page) {
  const [, target = "", anchor = ""] = /^([^#]*)(#.*)?$/.exec(token.attrGet("href") ?? "") ?? [];
  if (target === "" || /^[a-z]+:/.test(target)) return;
  const file = join(dirname(page), target);
  if (target.endsWith("README.md"))
    token.attrSet("href", `${target.replace(/README\.md$/, "index.md")}${anchor}`);
  if (target.endsWith(".md") || !existsSync(file) || statSync(file).isDirectory()) return;
  const path = relative(root, file);
  linked.add(path);
  token.attrSet("href", `${dirname(target)}/${nameOfCopy(path).split("/").at(-1)}`);
  token.attrSet("target", "_self");
}
