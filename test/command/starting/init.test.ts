import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../docs/pages.js";
import { pawl } from "../pawl.js";

const files = [
  "package.json",
  "tsconfig.json",
  ".gitignore",
  "README.md",
  "src/definitions.ts",
  "src/worker.ts",
  "src/start.ts",
  "test/definitions.test.ts",
];
const place = mkdtempSync(join(tmpdir(), "pawl-init-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));
const listed = (names: readonly string[]): string => names.map((name) => `  ${name}\n`).join("");

describe("pawl init in a new directory", () => {
  const made = join(place, "My App");
  let printed = "";
  beforeAll(async () => {
    const { code, stdout, stderr } = await pawl(["init", "My App"], { cwd: place });
    expect([code, stderr]).toEqual([0, ""]);
    printed = stdout;
    symlinkSync(join(root, "node_modules"), join(made, "node_modules"));
  });

  it("makes all files, and says what to do next", () => {
    expect(printed).toContain(
      `made in My App:\n${listed(files)}\nNext:\n  cd 'My App'\n  npm install\n  npm test `,
    );
    for (const file of files) expect(readFileSync(join(made, file), "utf8")).toMatch(/\S\n$/);
  });

  it("takes the releases of this checkout, and a name that npm takes", () => {
    const { name, dependencies, devDependencies } = JSON.parse(
      readFileSync(join(made, "package.json"), "utf8"),
    ) as { name: string; dependencies: Record<string, string>; devDependencies: Record<string, string> };
    expect(name).toBe("my-app");
    for (const [dependency, range] of Object.entries({ ...dependencies, ...devDependencies })) {
      const manifest = join(root, "node_modules", dependency, "package.json");
      const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
      const [major] = version.split(".");
      expect(range, dependency).toMatch(new RegExp(`^\\^${major}\\.`));
    }
  });

  // `npm run release:check` installs such a project from packed packages and runs all its scripts.
  it("has code that compiles, and a test that passes", async () => {
    const { scripts } = JSON.parse(readFileSync(join(made, "package.json"), "utf8")) as {
      scripts: Record<"check" | "test", string>;
    };
    const { NODE_OPTIONS: _ours, ...env } = process.env;
    const PATH = `${join(made, "node_modules/.bin")}:${env["PATH"]}`;
    const run = (script: string): Promise<{ stdout: string }> =>
      promisify(execFile)("sh", ["-c", script], {
        cwd: made,
        env: { ...env, PATH, NODE_TEST_CONTEXT: undefined },
      });
    const [, tested] = await Promise.all([run(scripts.check), run(scripts.test)]);
    expect(tested.stdout).toMatch(/^(#|ℹ) pass 1$/m);
  });
});

describe("pawl init in a directory with files", () => {
  it("overwrites none of them, and says how to complete a package.json", async () => {
    const cwd = join(place, "old");
    const own = JSON.stringify({ name: "old", scripts: { test: "vitest", start: "node ." } });
    mkdirSync(join(cwd, "src"), { recursive: true });
    writeFileSync(join(cwd, "package.json"), own);
    writeFileSync(join(cwd, "src/worker.ts"), "// mine\n");
    const { code, stdout } = await pawl(["init"], { cwd });
    const kept = ["package.json", "src/worker.ts"];
    expect(code).toBe(0);
    expect(stdout).toContain(`made in .:\n${listed(files.filter((file) => !kept.includes(file)))}`);
    expect(stdout).toContain(`kept as they are, because they exist:\n${listed(kept)}`);
    expect(stdout).toMatch(
      /^ {2}npm pkg set type=module scripts\.dev='pawl dev [^']+' scripts\.worker='[^']+' scripts\.check=/m,
    );
    expect(stdout).toMatch(/^ {2}npm install --save-dev @pawl\/local-postgres@\^/m);
    expect(readFileSync(join(cwd, "package.json"), "utf8")).toBe(own);
    expect(readFileSync(join(cwd, "src/worker.ts"), "utf8")).toBe("// mine\n");

    const again = await pawl(["init"], { cwd });
    expect(again.stdout).toContain("nothing to make in .\n");
  });

  it("refuses a place where it cannot make files, in one line", async () => {
    writeFileSync(join(place, "file"), "");
    const { code, stdout, stderr } = await pawl(["init", "file"], { cwd: place });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^pawl: cannot make .*file\/package\.json: .*\n$/);
    expect(readdirSync(place)).toContain("file");
  });
});
