/**
 * Makes the modules of `dist/generated`, which hold text that Pawl needs at run time: the SQL of the
 * schema, and the program of the heartbeat thread with all that it imports. So a bundler sees
 * everything, and nothing is read from the file system at run time. `src/generated/*.d.ts` says what
 * the modules export. `npm run build`, `npm pack` and both configurations of vitest call this, so
 * that a changed SQL file counts at once; a bare `tsc -b` does not.
 */

import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));

/** Writes the modules that have changed. Safe in several processes at once. */
export function generate() {
  mkdirSync(join(root, "dist/generated"), { recursive: true });
  write("schema", `export const sqlFiles = ${JSON.stringify(sqlFiles(), null, 1)};`);
  write("heartbeat-thread", `export const threadSource = ${JSON.stringify(threadSource())};`);
}

/** The text of each SQL file by its path in `schema/`, sorted. */
function sqlFiles() {
  const folder = join(root, "src/store/postgres/schema");
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".sql"))
    .map((path) => path.replaceAll("\\", "/"));
  return Object.fromEntries(paths.toSorted().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

/** The heartbeat thread as one CommonJS script, with the driver. It needs nothing but Node's modules. */
function threadSource() {
  const { outputFiles } = buildSync({
    entryPoints: [join(root, "src/heartbeat/thread-main.ts")],
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    format: "cjs",
    platform: "node",
    target: "node20",
    // Optional parts of the driver, for other runtimes and for its native variant.
    external: ["pg-native", "pg-cloudflare"],
    // A script in CommonJS needs no help to find Node's modules (`store/driver/builtin-require.ts`).
    logOverride: { "ignored-bare-import": "silent" },
    banner: { js: "/* Contains pg and its parts, MIT License, Copyright Brian Carlson and contributors. */" },
  });
  return outputFiles[0].text;
}

function write(name, text) {
  const file = join(root, "dist/generated", `${name}.js`);
  const whole = `// Made by scripts/generate.js. Do not edit.\n${text}\n`;
  if (read(file) === whole) return;
  writeFileSync(`${file}.${process.pid}`, whole);
  renameSync(`${file}.${process.pid}`, file);
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) generate();
