/** Packs the packages of this workspace, and makes empty projects that install them from a registry. */

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../docs/pages.js";
import { until } from "../support/until.js";

const execute = promisify(execFile);

export const packageFolders = ["pawl", "local-postgres", "dashboard", "server"];

export interface Packed {
  readonly tarball: string;
  readonly manifest: {
    readonly name: string;
    readonly version: string;
    readonly exports: Record<string, unknown>;
    readonly keywords?: string[];
    readonly license?: string;
    readonly description?: string;
  };
  /** The paths in the tarball. */
  readonly files: string[];
}

export const makeFolder = (name: string): string => mkdtempSync(join(tmpdir(), `pawl-release-${name}-`));

/** Packs a package as it is built now. */
export async function pack(folder: string, destination: string): Promise<Packed> {
  const place = join(root, "packages", folder);
  const options = ["--ignore-scripts", "--json", "--pack-destination", destination];
  const { stdout } = await execute("npm", ["pack", ...options], { cwd: place });
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  return {
    tarball: join(destination, packed.filename),
    manifest: JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as Packed["manifest"],
    files: packed.files.map(({ path }) => path),
  };
}

/** A folder where programs run as in the terminal of a user who has nothing but this registry. */
export class Project {
  readonly folder: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(folder: string, registry: string) {
    this.folder = folder;
    const own = Object.entries(process.env).filter(
      ([name]) => !/^(npm_|node_|vitest|pawl_|database_url$|ci$|force_color$)/i.test(name),
    );
    this.#env = {
      ...Object.fromEntries(own),
      NO_COLOR: "1",
      npm_config_registry: registry,
      npm_config_cache: join(folder, "..", "npm-cache"),
      npm_config_userconfig: join(folder, "..", "no-npmrc"),
      npm_config_audit: "false",
      npm_config_fund: "false",
      npm_config_update_notifier: "false",
    };
  }

  /** Runs a program to its end and answers what it prints; throws if it fails. */
  async run(program: string, ...args: string[]): Promise<string> {
    const options = { cwd: this.folder, env: this.#env, maxBuffer: 2 ** 26 };
    try {
      const { stdout, stderr } = await execute(program, args, options);
      return stdout + stderr;
    } catch (error) {
      const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      throw new Error(`${program} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
    }
  }

  /** Starts a program, waits until it prints a text, calls `use`, and ends it with Ctrl-C. */
  async during<T>(args: readonly string[], text: string, use: (printed: string) => Promise<T>): Promise<T> {
    const [program = "", ...rest] = args;
    const child = spawn(program, rest, { cwd: this.folder, env: this.#env, detached: true });
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (more: string) => (printed += more));
    }
    const ended = new Promise((resolve) => child.once("close", resolve));
    let hasEnded = false;
    void ended.then(() => (hasEnded = true));
    try {
      await until(`it prints ${text}`, () => printed.includes(text) || hasEnded, 120_000);
      if (!printed.includes(text)) throw new Error(`${args.join(" ")} ended:\n${printed}`);
      return await use(printed);
    } finally {
      // The whole group, as a terminal does.
      if (!hasEnded && child.pid !== undefined) process.kill(-child.pid, "SIGINT");
      await ended;
    }
  }
}
