/**
 * Runs the fixtures as real processes: what this package promises is about processes that come, go
 * and are killed.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

export const packageModule = fileURLToPath(new URL("../dist/index.js", import.meta.url));
export const userFixture = compiled(new URL("./fixtures/user.js", import.meta.url));
if (!existsSync(packageModule) || !existsSync(userFixture))
  throw new Error('these tests run the build, which is missing. Run "npm run build" first');
const elsewhereFixture = compiled(new URL("./fixtures/elsewhere.js", import.meta.url));

export interface Started {
  url: string;
  directory: string;
  pid: number;
}

export interface Failed {
  code: string;
  message: string;
}

export interface UserSettings {
  module?: string;
  fixture?: string;
  afterwards?: "stay" | "leave" | "stop";
  uid?: number;
  gid?: number;
  env?: NodeJS.ProcessEnv;
  /** Words in front of the command, for example `unshare --user`. */
  wrapper?: string[];
}

const children: ChildProcess[] = [];

afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

export class UserProcess {
  readonly child: ChildProcess;
  readonly #firstLine: Promise<unknown>;

  constructor(options: object, settings: UserSettings = {}) {
    const fixture = settings.fixture ?? userFixture;
    const command = [process.execPath, fixture, settings.module ?? packageModule];
    const [program = "", ...rest] = [...(settings.wrapper ?? []), ...command];
    this.child = runFixture(
      program,
      [...rest, JSON.stringify(options), settings.afterwards ?? "stay"],
      settings,
    );
    this.#firstLine = firstLineOf(this.child);
    this.#firstLine.catch(() => {}); // a test that kills it early does not ask
  }

  async started(): Promise<Started> {
    const line = await this.#firstLine;
    if (isStarted(line)) return line;
    throw new Error(`the server did not start: ${JSON.stringify(line)}`);
  }

  async failed(): Promise<Failed> {
    const line = await this.#firstLine;
    if (isFailed(line)) return line;
    throw new Error(`the server started: ${JSON.stringify(line)}`);
  }

  /** Its process has ended, and with it everything that writes to its output. */
  async ended(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "close");
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended();
  }
}

/** Fixtures run as plain JavaScript, from where `tsc -b` puts them. */
function compiled(fixture: URL): string {
  const path = fileURLToPath(fixture);
  return join(dirname(path), "..", "dist", "fixtures", basename(path));
}

export async function failureElsewhere(platform: string, arch: string): Promise<Failed> {
  const child = runFixture(process.execPath, [elsewhereFixture, packageModule, platform, arch], {});
  const line = await firstLineOf(child);
  if (isFailed(line)) return line;
  throw new Error(`no failure: ${JSON.stringify(line)}`);
}

function runFixture(program: string, programArguments: string[], settings: UserSettings): ChildProcess {
  const { uid, gid, env } = settings;
  const child = spawn(program, programArguments, {
    cwd: "/",
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
    ...(uid === undefined ? {} : { uid, gid: gid ?? uid }),
  });
  children.push(child);
  return child;
}

function firstLineOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
      if (output.includes("\n")) resolve(JSON.parse(output));
    });
    child.once("error", reject);
    child.once("close", (exitCode, signal) =>
      reject(new Error(`ended with ${exitCode ?? signal}, saying "${output}"`)),
    );
  });
}

function isStarted(line: unknown): line is Started {
  return typeof line === "object" && line !== null && "url" in line;
}

function isFailed(line: unknown): line is Failed {
  return typeof line === "object" && line !== null && "message" in line;
}
