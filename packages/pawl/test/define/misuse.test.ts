import { execFile } from "node:child_process";
import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

// The type tests are compiled once more without their @ts-expect-error lines. The errors must then be exactly the
// expected ones, each with its code and on its argument: a directive alone would also be satisfied by an error that
// blames the wrong line, and types that were loosened would leave an expected error out.

const here = import.meta.dirname;
const packageRoot = path.resolve(here, "../..");
// Inside the package, so that imports of packages resolve; below the output of the tests, which is never committed.
const scratch = path.join(packageRoot, "test/dist/misuse");
const compiler = path.join(
  path.dirname(fileURLToPath(import.meta.resolve("typescript/package.json"))),
  "bin/tsc",
);

interface Expected {
  readonly line: number;
  readonly column: number;
  readonly code: string;
}

const files = (await readdir(here)).filter((name) => name.endsWith(".test-d.ts"));

beforeAll(async () => {
  await rm(scratch, { recursive: true, force: true });
  await cp(path.join(here, "support"), path.join(scratch, "support"), { recursive: true });
  for (const file of files) await writeFile(path.join(scratch, file), withoutDirectives(await source(file)));
  await writeFile(
    path.join(scratch, "tsconfig.json"),
    JSON.stringify({
      extends: path.resolve(packageRoot, "../../tsconfig.base.json"),
      compilerOptions: { noEmit: true, composite: false, declaration: false, declarationMap: false },
      include: ["*.ts"],
    }),
  );
});

afterAll(() => rm(scratch, { recursive: true, force: true }));

describe("every misuse is an error on the offending argument", () => {
  let output: string;
  beforeAll(async () => {
    output = await compile();
  }, 60_000);

  for (const file of files) {
    test(file, async () => {
      const expected = expectations(await source(file));
      expect(expected.length).toBeGreaterThan(0);
      expect(errorsIn(output, file)).toEqual(expected);
    });
  }
});

async function source(file: string): Promise<string> {
  const text = await readFile(path.join(here, file), "utf8");
  return text.replaceAll('"../../dist/', `"${packageRoot}/dist/`);
}

function withoutDirectives(text: string): string {
  return text.replaceAll("@ts-expect-error", "expected:");
}

/** `// @ts-expect-error TS2345 at "shipp"` expects that error where that text begins in the next line. */
function expectations(text: string): Expected[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) => {
    if (!line.includes("@ts-expect-error")) return [];
    const [, code, at] = /@ts-expect-error (TS\d+) at (.+)$/.exec(line) ?? [];
    if (code === undefined || at === undefined) throw new Error(`no code and text in: ${line}`);
    return [{ line: index + 2, column: (lines[index + 1] ?? "").indexOf(at) + 1, code }];
  });
}

function errorsIn(output: string, file: string): Expected[] {
  const pattern = /^(.*)\((\d+),(\d+)\): error (TS\d+)/gm;
  return [...output.matchAll(pattern)]
    .filter(([, name]) => path.basename(name ?? "") === file)
    .map(([, , line, column, code]) => ({ line: Number(line), column: Number(column), code: code ?? "" }));
}

function compile(): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [compiler, "-p", scratch, "--pretty", "false"],
      { maxBuffer: 1 << 26 },
      (_error, stdout) => resolve(stdout),
    );
  });
}
