/**
 * Lets tests run from the sources of the workspace, without a build. Imports of a workspace package,
 * and imports of its `dist`, get the source file that they are built from. Programs that a package
 * starts as a process (`new URL("./x.js", import.meta.url)`) are started by tsx. A plugin
 * of `vitest.config.ts`; `vitest.built.config.ts` runs the same tests on the built packages instead.
 * Programs that tests start themselves are always built ones (`support/built.ts`).
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Plugin } from "vitest/config";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const packages = ["packages/pawl", "packages/server", "packages/local-postgres"];
const generated = join(root, "packages/pawl/src/generated/");
const launchers = join(root, "node_modules/.cache/pawl-from-source");

export function fromSource(): Plugin {
  const entries = entriesOf(packages);
  return {
    name: "pawl-from-source",
    enforce: "pre",
    resolveId(id, importer) {
      const entry = entries.get(id);
      if (entry !== undefined) return entry;
      if (importer === undefined || !id.startsWith(".")) return undefined;
      const path = resolve(dirname(importer), id);
      // Text that `scripts/generate.js` has made of sources: there is no other source of it.
      if (path.startsWith(generated)) return { id: path.replace("/src/", "/dist/"), external: true };
      return sourceOf(path);
    },
    transform(code, id) {
      if (!id.startsWith(join(root, "packages")) || !id.includes("/src/")) return undefined;
      return code.replaceAll(/new URL\("(\.[^"]+)\.js", import\.meta\.url\)/g, (all, path: string) => {
        const source = resolve(dirname(id), `${path}.ts`);
        return existsSync(source) ? `new URL("${launcherOf(source)}")` : all;
      });
    },
  };
}

/** The names under which packages are imported, each with its source file. */
function entriesOf(directories: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    directories.flatMap((directory) => {
      const { name, exports } = JSON.parse(readFileSync(join(root, directory, "package.json"), "utf8")) as {
        name: string;
        exports: Record<string, string | { default: string }>;
      };
      return Object.entries(exports).flatMap(([path, target]) => {
        const source =
          typeof target === "string" ? undefined : sourceOf(join(root, directory, target.default));
        return source === undefined ? [] : [[join(name, path), source] as const];
      });
    }),
  );
}

/** The source of a file that a build writes: packages have a `src`, the tests have none. */
function sourceOf(built: string): string | undefined {
  if (!built.startsWith(root) || !built.includes("/dist/")) return undefined;
  const typescript = built.replace(/\.js$/, ".ts");
  return ["/src/", "/"].map((room) => typescript.replace("/dist/", room)).find((path) => existsSync(path));
}

/** The URL of a file that runs a program from its source, whoever starts it and with which flags. */
function launcherOf(source: string): string {
  const launcher = join(launchers, relative(root, source).replaceAll("/", "-").replace(/\.ts$/, ".mjs"));
  mkdirSync(launchers, { recursive: true });
  writeFileSync(
    launcher,
    `import { register } from "tsx/esm/api";
register({ tsconfig: false });
await import(${JSON.stringify(pathToFileURL(source).href)});
`,
  );
  return pathToFileURL(launcher).href;
}
