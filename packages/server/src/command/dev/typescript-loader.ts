/**
 * Loads TypeScript with `tsx` if it is installed, else with Node itself. Node strips types since
 * 22.18, but supports no enums and no imports that name `.js` for a `.ts` file. Called by
 * `load-definitions.ts`.
 */

import { extname } from "node:path";
import { UsageError } from "../terminal/failure.js";
import { shortPath } from "../terminal/text.js";

interface Loader {
  readonly register: () => unknown;
}

const install = "npm install --save-dev tsx";

/** Returns whether `tsx` was found. Throws if the file is TypeScript and nothing can load it. */
export async function registerTypeScript(path: string): Promise<boolean> {
  const loaders = await findTsx();
  for (const { register } of loaders ?? []) register();
  if (loaders !== undefined) return true;
  if (isTypeScript(path) && !stripsTypes) {
    throw new UsageError(
      `${shortPath(path)} is TypeScript, which Node.js ${process.version} cannot load by itself: ${install}`,
    );
  }
  return false;
}

/** Advice for an error of Node's loader that `tsx` would avoid; empty for any other. */
export function typeScriptHint(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const isKnown =
    code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX" ||
    code === "ERR_UNKNOWN_FILE_EXTENSION" ||
    code === "ERR_MODULE_NOT_FOUND";
  return isKnown ? `; if that is TypeScript: ${install}` : "";
}

const stripsTypes = "typescript" in process.features && process.features.typescript !== false;

const isTypeScript = (path: string): boolean => [".ts", ".mts", ".cts", ".tsx"].includes(extname(path));

async function findTsx(): Promise<Loader[] | undefined> {
  try {
    return [await import("tsx/esm/api"), await import("tsx/cjs/api")];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
