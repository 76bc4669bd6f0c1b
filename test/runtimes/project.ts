/**
 * Projects of users in temporary folders, with Pawl as npm packs it. `linked` takes all other packages
 * from this workspace, so that it is quick and needs no network; `installed` lets npm install them.
 */

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect } from "vitest";
import { root } from "../docs/pages.js";
import { type Ended, startProgram } from "../docs/program.js";
import type { TestDatabase } from "../support/database.js";
import { until } from "../support/until.js";

const execute = promisify(execFile);
const programs = fileURLToPath(new URL("./programs/", import.meta.url)).replace("/dist/", "/");

export interface Project {
  readonly folder: string;
  /** Runs a program of the project to its end and answers its output. */
  run(program: string, ...args: string[]): Promise<string>;
}

/** Packs a package of this workspace, as it is built now; answers the path of the tarball. */
async function pack(name: string, folder: string): Promise<string> {
  const args = ["pack", "--ignore-scripts", "--json", "-w", name, "--pack-destination", folder];
  const { stdout } = await execute("npm", args, { cwd: root });
  const [packed] = JSON.parse(stdout) as { filename: string }[];
  return join(folder, packed!.filename);
}

/** A folder that is removed when the test file ends. */
export async function temporary(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `pawl-${name}-`));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function projectIn(folder: string): Project {
  return {
    folder,
    run: async (program, ...args) => {
      const env = {
        ...process.env,
        NODE_ENV: undefined,
        NO_COLOR: "1",
        CI: "1",
        NEXT_TELEMETRY_DISABLED: "1",
      };
      try {
        const { stdout, stderr } = await execute(program, args, { cwd: folder, env, maxBuffer: 2 ** 26 });
        return stdout + stderr;
      } catch (error) {
        const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
        throw new Error(`${program} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
      }
    },
  };
}

/** A project as `npm init -y` makes it, with the programs of this folder and these packages of this workspace. */
export async function linked(packages: readonly string[]): Promise<Project> {
  const folder = await temporary("project");
  await writeManifest(folder, "commonjs");
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "pawl"), { recursive: true });
  const tarball = await pack("pawl", folder);
  await execute("tar", ["-xzf", tarball, "-C", join(modules, "pawl"), "--strip-components=1"]);
  for (const name of ["pg", "croner", "@opentelemetry/api", "@standard-schema/spec", ...packages]) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(root, "node_modules", name), join(modules, name), "dir");
  }
  await cp(programs, folder, { recursive: true });
  return projectIn(folder);
}

/** The same with `npm install` of the tarball and these packages; type undefined: as `create-next-app` makes it. */
export async function installed(
  packages: readonly string[],
  type: "commonjs" | "module" | undefined,
): Promise<Project> {
  const folder = await temporary("project");
  await writeManifest(folder, type);
  const tarball = await pack("pawl", folder);
  const project = projectIn(folder);
  await project.run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", tarball, ...packages);
  await cp(programs, folder, { recursive: true });
  return project;
}

const writeManifest = (folder: string, type: string | undefined): Promise<void> =>
  writeFile(join(folder, "package.json"), JSON.stringify({ name: "project", version: "1.0.0", type }));

/**
 * Starts the program of a user and checks everything that it must do: the run is done, nothing was
 * logged, the heartbeat thread beats, and the process ends by itself after `stop`.
 */
export async function checkProgram(
  database: TestDatabase,
  cwd: string,
  args: readonly [string, ...string[]],
  runtime?: string,
): Promise<void> {
  const [file, ...rest] = args;
  const env = { APP_DATABASE: database.directUrl };
  const app = startProgram(file, { args: rest, cwd, env, ...(runtime === undefined ? {} : { runtime }) });
  let ended: Ended | undefined;
  void app.ended.then((how) => (ended = how));
  await until(
    "the run is done or the program has ended",
    () => app.stdout().includes("\n") || ended !== undefined,
  );
  expect(ended).toBeUndefined();
  expect(JSON.parse(app.stdout())).toEqual({ result: "hello bundle", logged: [] });
  const lastBeat = async (): Promise<unknown> =>
    (await database.sql("select max(seen_at)::text as seen from workers"))[0]!["seen"];
  const before = await lastBeat();
  await until("a heartbeat came", async () => (await lastBeat()) !== before);
  app.process.stdin!.end();
  expect(await app.ended).toMatchObject({ code: 0, stderr: "" });
}
