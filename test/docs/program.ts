/**
 * Programs as users have them: a directory of its own with `pawl` installed, compiled by `tsc`, executed by node in a
 * process of its own.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { requireBuild } from "../support/built.js";
import { root } from "./pages.js";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Program {
  readonly process: ChildProcess;
  /** What it has printed so far. */
  stdout(): string;
  readonly ended: Promise<Ended>;
}

/** The environment without what would lead a program to a database. */
const environment = { ...process.env };
delete environment["PAWL_URL"];
delete environment["DATABASE_URL"];

/** Starts `node file` in a directory; `runtime`: another program than this node. */
export function startProgram(
  file: string,
  options: { cwd?: string; env?: Record<string, string>; args?: readonly string[]; runtime?: string } = {},
): Program {
  requireBuild();
  const { cwd = root, env = {}, args = [], runtime = process.execPath } = options;
  const child = spawn(runtime, [file, ...args], { cwd, env: { ...environment, ...env } });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
  return { process: child, stdout: () => stdout, ended };
}

/** Runs `node file` to its end. */
export function runProgram(...given: Parameters<typeof startProgram>): Promise<Ended> {
  return startProgram(...given).ended;
}

/** Where the projects of a test file are, until it ends. */
const projects = mkdtempSync(join(tmpdir(), "pawl-docs-"));
afterAll(() => rmSync(projects, { recursive: true, force: true }));

/** A directory with these files, `pawl` installed and TypeScript configured as strictly as Pawl itself is. */
export function makeProject(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(projects, "project-"));
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = {
    composite: false,
    declarationMap: false,
    declaration: false,
    noUnusedParameters: false,
  };
  const config = { extends: join(root, "tsconfig.base.json"), compilerOptions, include: ["*.ts"] };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
  // What `prisma generate` would have made.
  mkdirSync(join(directory, "generated", "prisma"), { recursive: true });
  copyFileSync(join(root, "test/support/libraries/prisma.ts"), join(directory, "generated/prisma/client.ts"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

/** Compiles a project; answers what the compiler says against it. */
export async function compile(directory: string): Promise<string> {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { code, stdout, stderr } = await runProgram(tsc, { cwd: directory });
  return code === 0 ? "" : stdout + stderr;
}
