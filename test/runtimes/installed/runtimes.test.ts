/**
 * `npm run test:runtimes`: Pawl as npm packs it, in fresh projects that npm installs from its registry:
 * webpack, Node's type stripping, Bun and Deno. Each must work without options, and end by itself.
 */

import { existsSync } from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "vitest";
import { requireBuild } from "../../support/built.js";
import { testDatabase } from "../../support/database.js";
import { checkProgram, installed, type Project, temporary } from "../project.js";

requireBuild();
const database = await testDatabase();
const minutes = 60_000;

/** The program of a package that only has a binary for this platform. */
function binary(project: Project, ...paths: string[]): string {
  const found = paths
    .map((path) => join(project.folder, "node_modules", path))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`npm installed none of ${paths.join(", ")}`);
  return found;
}
const platform = `${process.platform}-${process.arch}`;

describe("in a fresh project", () => {
  it("a bundle of webpack works without options", { timeout: 10 * minutes }, async () => {
    const project = await installed(["webpack", "webpack-cli", "esbuild"], "commonjs");
    await project.run("npx", "esbuild", "app.ts", "--format=esm", "--outfile=app-plain.mjs");
    const configuration = { mode: "production", target: "node", entry: "./app-plain.mjs" };
    await writeFile(
      join(project.folder, "webpack.config.js"),
      `module.exports = ${JSON.stringify(configuration)}`,
    );
    await project.run("npx", "webpack");
    const alone = await temporary("webpack");
    await cp(join(project.folder, "dist"), alone, { recursive: true });
    await checkProgram(database, alone, ["main.js"]);
  });

  it.each(["22", "24"])("Node %s strips the types", { timeout: 10 * minutes }, async (version) => {
    const name = `node-${platform}`;
    const project = await installed([`${name}@${version}`], "module");
    const flags = version === "22" ? (["--no-warnings", "app.ts"] as const) : (["app.ts"] as const);
    await checkProgram(database, project.folder, [...flags], binary(project, `${name}/bin/node`));
  });

  it("Bun runs TypeScript", { timeout: 10 * minutes }, async () => {
    const project = await installed(["bun"], "module");
    const bun = binary(project, ".bin/bun");
    await checkProgram(database, project.folder, ["run", "app.ts"], bun);
  });

  it("Deno runs TypeScript", { timeout: 10 * minutes }, async () => {
    const project = await installed(["deno"], "module");
    const deno = binary(project, `@deno/${platform}-glibc/deno`, `@deno/${platform}/deno`);
    await checkProgram(database, project.folder, ["run", "-A", "app.ts"], deno);
  });
});
