/** The command where `tsx` is not installed, as in production: JavaScript is loaded, and TypeScript if Node itself can. */

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { root } from "../docs/pages.js";
import { type Ended, runProgram, startProgram } from "../docs/program.js";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";

const { url } = await testDatabase();
const project = mkdtempSync(join(tmpdir(), "pawl-without-tsx-"));
afterAll(() => rmSync(project, { recursive: true, force: true }));

// Everything that is installed here, but tsx. The command itself is a copy: by a link it would find the neighbours of this repository.
const modules = join(project, "node_modules");
mkdirSync(join(modules, "@pawl"), { recursive: true });
for (const name of readdirSync(join(root, "node_modules"))) {
  if (["tsx", "esbuild", "@esbuild", "@pawl"].includes(name)) continue;
  symlinkSync(join(root, "node_modules", name), join(modules, name));
}
const server = join(modules, "@pawl", "server");
for (const part of ["bin", "dist", "package.json"]) {
  cpSync(join(root, "packages/server", part), join(server, part), { recursive: true });
}
// Versions of its own.
const nested = join(root, "packages/server/node_modules");
if (existsSync(nested)) symlinkSync(nested, join(server, "node_modules"));
symlinkSync(join(root, "packages/dashboard"), join(modules, "@pawl", "dashboard"));
const code = (type: string): string =>
  `import { job } from "pawl";\nexport const a = job({ name: "a", run: (_ctx, n${type}) => n });\n`;
writeFileSync(join(project, "package.json"), '{ "type": "module" }');
writeFileSync(join(project, "plain.js"), code(""));
writeFileSync(join(project, "typed.ts"), code(": number"));
writeFileSync(join(project, "enum.ts"), `enum Size { Small }\n${code(": Size")}`);

const bin = join(server, "bin", "pawl.js");
const env = { DATABASE_URL: url, NO_COLOR: "1" };
const check = (file: string): Promise<Ended> => runProgram(bin, { cwd: project, env, args: ["check", file] });
const stripsTypes = "typescript" in process.features && process.features.typescript !== false;

describe("without tsx", () => {
  it("JavaScript is loaded", async () => {
    expect(await check("plain.js")).toMatchObject({ code: 0, stderr: "" });
  });

  it.runIf(stripsTypes)("TypeScript is loaded by Node, and what that cannot load says what can", async () => {
    expect(await check("typed.ts")).toMatchObject({ code: 0 });
    expect((await check("enum.ts")).stderr).toContain("; if that is TypeScript: npm install --save-dev tsx");
  });

  it.skipIf(stripsTypes)("TypeScript is refused in one line that says what to install", async () => {
    const { code: exit, stderr } = await check("typed.ts");
    expect([exit, stderr]).toEqual([
      2,
      `pawl: typed.ts is TypeScript, which Node.js ${process.version} cannot load by itself: npm install --save-dev tsx\n`,
    ]);
  });

  it.skipIf(stripsTypes)(
    "pawl dev --watch says so and goes on; a project that has tsx is served",
    async () => {
      const started = (): ReturnType<typeof startProgram> =>
        startProgram(bin, { cwd: project, env, args: ["dev", "--watch", "typed.ts", "--port", "0"] });
      const without = started();
      onTestFinished(() => void without.process.kill("SIGKILL"));
      await until("it says so", () => without.stdout().includes("npm install --save-dev tsx"));
      without.process.kill("SIGINT");
      expect((await without.ended).code).toBe(0);
      for (const name of ["tsx", "esbuild", "@esbuild"]) {
        symlinkSync(join(root, "node_modules", name), join(modules, name));
      }
      const withTsx = started();
      onTestFinished(() => void withTsx.process.kill("SIGKILL"));
      await until("it serves", () => withTsx.stdout().includes("serves a@1 of typed.ts"));
      withTsx.process.kill("SIGINT");
      expect((await withTsx.ended).code).toBe(0);
    },
  );
});
