/**
 * `pawl init`: makes a project with a definition, a worker, a script and a test. It never overwrites
 * a file: it keeps what is there and says so.
 */

import { lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { Command } from "commander";
import { Refusal } from "../terminal/failure.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import { version } from "../terminal/version.js";
import { dependenciesOf, devDependenciesOf, projectFiles, scripts } from "./project-files.js";

export function addInit(program: Command, session: Session): void {
  addCommand(program, session, {
    name: "init",
    description: "make a project: a definition, a worker, a script that starts a run, and a test",
    examples: ["pawl init my-app", "pawl init"],
  })
    .argument("[directory]", "where to make it (default: this directory)")
    .action(
      action(session, async (directory = ".") => {
        const place = resolve(directory);
        const files = projectFiles({ name: packageName(place), version });
        const made = Object.entries(files).filter(([file, text]) => create(join(place, file), text));
        const names = made.map(([file]) => file);
        const kept = Object.keys(files).filter((file) => !names.includes(file));
        session.shell.print(report(place, names, kept));
      }),
    );
}

/** Makes a file, with its directory. False: there is one already, and it stays as it is. */
function create(file: string, text: string): boolean {
  try {
    if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) return false;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { flag: "wx" });
    return true;
  } catch (error) {
    throw new Refusal(`cannot make ${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** A name that npm takes, made of the name of the directory. */
function packageName(directory: string): string {
  const name = basename(directory)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return name === "" || name === "pawl" ? "pawl-app" : name.slice(0, 200);
}

function report(place: string, made: readonly string[], kept: readonly string[]): string {
  const shown = relative(process.cwd(), place) || ".";
  const list = (files: readonly string[]): string => files.map((file) => `  ${file}`).join("\n");
  return [
    made.length === 0 ? `nothing to make in ${shown}` : `made in ${shown}:\n${list(made)}`,
    ...(kept.length === 0 ? [] : [`kept as they are, because they exist:\n${list(kept)}`]),
    `\nNext:\n${nextCalls(place, shown, kept.includes("package.json")).join("\n")}`,
  ].join("\n");
}

function nextCalls(place: string, shown: string, hasPackage: boolean): string[] {
  return [
    ...(shown === "." ? [] : [`  cd ${/[^\w./-]/.test(shown) ? `'${shown}'` : shown}`]),
    ...(hasPackage ? completing(join(place, "package.json")) : ["  npm install"]),
    "  npm test       # runs the workflow with a clock that the test moves",
    "  npm run dev    # a local Postgres, a worker and the dashboard",
    "  npm start      # in another terminal: starts a run and prints its result",
  ];
}

/** The calls that add to the package.json of the user what the other files need. */
function completing(file: string): string[] {
  const given = readPackage(file);
  const missing = Object.entries(scripts).filter(([name]) => given.scripts?.[name] === undefined);
  const settings = [
    ...(given.type === "module" ? [] : ["type=module"]),
    ...missing.map(([name, call]) => `scripts.${name}='${call}'`),
  ];
  const packages = (of: Record<string, string>): string =>
    Object.entries(of)
      .map(([name, range]) => `${name}@${range}`)
      .join(" ");
  return [
    ...(settings.length === 0 ? [] : [`  npm pkg set ${settings.join(" ")}`]),
    `  npm install ${packages(dependenciesOf(version))}`,
    `  npm install --save-dev ${packages(devDependenciesOf(version))}`,
  ];
}

interface PackageFile {
  readonly type?: unknown;
  readonly scripts?: Readonly<Record<string, unknown>>;
}

function readPackage(file: string): PackageFile {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as PackageFile;
  } catch (error) {
    throw new Refusal(`cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
}
