import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../docs/pages.js";
import { requireBuild } from "../support/built.js";

requireBuild();
const dist = join(root, "packages/pawl/dist");

/** All files that a built module imports, itself included, and what it imports from elsewhere. */
function importsOf(entry: string): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const walk = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, from = ""] of text.matchAll(/(?<!["'])\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)) {
      if (from.startsWith(".")) walk(join(dirname(file), from));
      else packages.add(from);
    }
  };
  walk(join(dist, entry));
  return { files, packages };
}

/** The code of a module, without comments. */
function codeOf(file: string): string {
  return readFileSync(file, "utf8")
    .replaceAll(/\/\*.*?\*\//gs, "")
    .replaceAll(/^\s*\/\/.*$/gm, "");
}

describe("pawl/client", () => {
  const { files, packages } = importsOf("client.js");

  it("imports no package at all: no driver, and nothing of Node", () => {
    expect(files.size).toBeGreaterThan(20);
    expect([...packages]).toEqual([]);
  });

  it("uses no global that only Node has, but one, which it looks for first", () => {
    const users = [...files].filter((file) =>
      /\b(Buffer|process|require|__dirname)\b\s*[.(]/.test(codeOf(file)),
    );
    expect(users.map((file) => relative(dist, file))).toEqual(["store/http/send.js"]);
    expect(codeOf(users[0]!)).toContain('typeof process === "undefined"');
  });

  it("is told apart from pawl itself, which needs both", () => {
    const whole = importsOf("index.js");
    expect(whole.packages).toContain("pg");
    expect([...whole.files].some((file) => /\bprocess\./.test(codeOf(file)))).toBe(true);
  });
});
