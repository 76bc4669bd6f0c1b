/**
 * Pawl as npm packs it, in a fresh project: bundled by esbuild, loaded by `require`, executed by tsx.
 * A bundle runs in a folder of its own, where it finds no package. `npm run test:runtimes` tests more.
 */

import { join } from "node:path";
import { build, type Format } from "esbuild";
import { beforeAll, describe, it, expect } from "vitest";
import { root } from "../docs/pages.js";
import { runProgram } from "../docs/program.js";
import { requireBuild } from "../support/built.js";
import { testDatabase } from "../support/database.js";
import { checkProgram, linked, type Project, temporary } from "./project.js";

const database = await testDatabase();
let project: Project;
beforeAll(async () => {
  requireBuild();
  project = await linked(["tsx"]);
});

async function bundle(format: Format, name: string): Promise<string> {
  const folder = await temporary("bundle");
  const { warnings } = await build({
    absWorkingDir: project.folder,
    entryPoints: ["app.ts"],
    outfile: join(folder, name),
    bundle: true,
    platform: "node",
    format,
    logLevel: "silent",
  });
  expect(warnings).toEqual([]);
  return folder;
}

describe("in a fresh project", () => {
  it("a bundle of esbuild in ES modules works without options and without packages", async () => {
    await checkProgram(database, await bundle("esm", "app.mjs"), ["app.mjs"]);
  });

  it("a bundle of esbuild in CommonJS works without options and without packages", async () => {
    await checkProgram(database, await bundle("cjs", "app.cjs"), ["app.cjs"]);
  });

  it("require loads every entry of the package", async () => {
    await checkProgram(database, project.folder, ["app.cjs"]);
  });

  it("tsx runs TypeScript in a project of npm init", async () => {
    await checkProgram(database, project.folder, ["node_modules/tsx/dist/cli.mjs", "app.ts"]);
  });
});

it.each(["esm", "cjs"] as const)(
  "a bundle (%s) of @pawl/local-postgres says why it cannot work",
  async (format) => {
    const folder = await temporary("bundle");
    const file = format === "esm" ? "start.mjs" : "start.cjs";
    const contents = `import { startLocalPostgres } from "@pawl/local-postgres";
    startLocalPostgres().catch((error) => console.log(error.message));`;
    await build({
      stdin: { contents, resolveDir: root },
      outfile: join(folder, file),
      bundle: true,
      platform: "node",
      format,
      logLevel: "silent",
    });
    const { stdout } = await runProgram(file, { cwd: folder });
    expect(stdout).toMatch(
      /^@pawl\/local-postgres starts programs .* cannot be part of a bundle: mark it as external.*\n$/,
    );
  },
);
