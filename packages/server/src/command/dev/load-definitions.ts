/**
 * Loads definitions from a user's file, TypeScript or JavaScript, ES module or CommonJS, without a
 * build. `tsx`, an optional peer, loads TypeScript; without it Node does, if it strips types. The
 * result has the copy of `pawl` that the file itself uses: a second copy would not recognize its
 * errors and children. Called by the worker of `pawl dev` and by `pawl check`.
 */

import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect } from "node:util";
import * as ownPawl from "pawl";
import { values } from "pawl/engine";
import { UsageError } from "../terminal/failure.js";
import { shortPath } from "../terminal/text.js";
import { registerTypeScript, typeScriptHint } from "./typescript-loader.js";

export interface Loaded {
  readonly definitions: readonly ownPawl.AnyDefinition[];
  readonly pawl: typeof ownPawl;
}

/** The file cannot be loaded; the message says where and why, in one line. */
class LoadError extends Error {}

export async function loadDefinitions(file: string): Promise<Loaded> {
  const path = resolve(file);
  if (!existsSync(path) || !statSync(path).isFile()) throw new UsageError(`there is no file ${file}`);
  process.setSourceMapsEnabled(true);
  const hasTsx = await registerTypeScript(path);
  let exported: object;
  try {
    exported = (await import(pathToFileURL(path).href)) as object;
  } catch (error) {
    throw new LoadError(`${explainLoading(error, path)}${hasTsx ? "" : typeScriptHint(error)}`, {
      cause: error,
    });
  }
  const definitions = definitionsIn(exported);
  if (definitions.length === 0) {
    throw new LoadError(
      `${shortPath(path)} exports no definition; export what workflow(…), job(…) or machine(…) returns, as in: ` +
        "export const signup = workflow({ … })",
    );
  }
  return { definitions, pawl: await pawlOf(path) };
}

/** Every exported definition, by itself or in a list. */
function definitionsIn(exported: object): ownPawl.AnyDefinition[] {
  const found = new Set<ownPawl.AnyDefinition>();
  const collect = (value: unknown, depth: number): void => {
    if (values.isDefinition(value)) {
      found.add(value);
    } else if (Array.isArray(value)) {
      for (const item of value as unknown[]) if (values.isDefinition(item)) found.add(item);
    } else if (depth > 0 && typeof value === "object" && value !== null) {
      // The default export of a CommonJS module has all its exports.
      for (const member of Object.values(value)) collect(member, depth - 1);
    }
  };
  for (const [name, value] of Object.entries(exported)) collect(value, name === "default" ? 1 : 0);
  return [...found];
}

/** The copy of `pawl` that this file has loaded. A CommonJS file has its own. */
async function pawlOf(path: string): Promise<typeof ownPawl> {
  const require = createRequire(path);
  const resolved = resolvePawl(path);
  // The file imports its definitions from elsewhere.
  if (resolved === undefined) return ownPawl;
  if (require.cache[resolved] !== undefined) return require(resolved) as typeof ownPawl;
  return (await import(pathToFileURL(resolved).href)) as typeof ownPawl;
}

function resolvePawl(path: string): string | undefined {
  try {
    return createRequire(path).resolve("pawl");
  } catch {
    return undefined;
  }
}

/** Where and why: the line of a syntax error, or the first line of user code in the stack. */
function explainLoading(error: unknown, path: string): string {
  const { message, stack = "" } = error instanceof Error ? error : { message: `it throws ${inspect(error)}` };
  const syntax = /^(.+?):(\d+):(\d+): ERROR: (.+)$/m.exec(message);
  if (syntax !== null) {
    const [, file = "", line, column, problem] = syntax;
    return `${shortPath(file)}:${line}:${Number(column) + 1}: ${problem}`;
  }
  const [first = ""] = message.split("\n", 1);
  const library = dirname(resolvePawl(path) ?? "");
  const frame = [...stack.matchAll(/(?:\(|at |async )(?:file:\/\/)?(\/[^()\n]+?):(\d+):(\d+)\)?$/gm)].find(
    ([, file = ""]) =>
      !file.includes("/node_modules/") && !file.startsWith(library) && !file.startsWith(ours),
  );
  if (frame === undefined) return `${shortPath(path)}: ${first}`;
  const [, file = "", line, column] = frame;
  return `${shortPath(file)}:${line}:${column}: ${first}`;
}

const ours = resolve(dirname(fileURLToPath(import.meta.url)), "..");
