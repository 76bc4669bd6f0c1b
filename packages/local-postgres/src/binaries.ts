/**
 * Makes the npm-shipped binaries runnable by the server's user. Normally they run from
 * node_modules. That fails for a read-only install with --ignore-scripts, an unreadable project or
 * a mount without execution. Then this copies them once into the cache, or for this server only if
 * there is no cache.
 */
import { existsSync, lstatSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { copyTree } from "./copy-tree.js";
import { LocalPostgresError, systemCodeOf, tailOf } from "./errors.js";
import type { Identity } from "./identity.js";
import { unsupported, type NativePackage } from "./platform.js";
import { runProgram } from "./run-program.js";
import { discard, publish } from "./trusted-cache.js";

/** Answers with a `native/` directory whose bin/postgres runs as `identity`. */
export async function runnableBinaries(
  native: NativePackage,
  identity: Identity | undefined,
  cache: string | undefined,
  runtimeDirectory: string,
): Promise<string> {
  if (
    makeLibraryLinks(native.directory) &&
    (await whyNotRunnable(native.directory, identity)) === undefined
  ) {
    return native.directory;
  }
  const cached = cache && join(cache, `native-${native.version}`);
  if (cached && existsSync(cached)) {
    if ((await whyNotRunnable(cached, identity)) === undefined) return cached;
    discard(cached);
  }
  const copy = join(runtimeDirectory, "native");
  copyTree(native.directory, copy, {
    directoryMode: 0o755,
    fileMode: (mode) => ((mode & 0o111) === 0 ? 0o644 : 0o755),
    owner: undefined,
  });
  makeLibraryLinks(copy);
  const reason = await whyNotRunnable(copy, identity);
  if (reason !== undefined) throw cannotRun(native, reason);
  if (cached === undefined) return copy;
  if (!publish(copy, cached)) rmSync(copy, { recursive: true, force: true });
  return cached;
}

/**
 * The links between library versions that npm cannot pack. The package makes them in its
 * postinstall script, which may not have run. Answers whether all of them are there now.
 */
function makeLibraryLinks(nativeDirectory: string): boolean {
  for (const { source, target } of readLinks(nativeDirectory)) {
    const link = join(dirname(nativeDirectory), target);
    try {
      symlinkSync(basename(source), link);
    } catch (error) {
      if (systemCodeOf(error) !== "EEXIST" && !lstatSync(link, { throwIfNoEntry: false })) return false;
    }
  }
  return true;
}

/**
 * The file names paths from the package's root:
 * `{"source":"native/lib/a.so.1.2","target":"native/lib/a.so.1"}`.
 */
function readLinks(nativeDirectory: string): Array<{ source: string; target: string }> {
  const file = join(nativeDirectory, "pg-symlinks.json");
  if (!existsSync(file)) return [];
  const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!Array.isArray(parsed)) return [];
  return parsed.filter(isLink);
}

function isLink(entry: unknown): entry is { source: string; target: string } {
  if (typeof entry !== "object" || entry === null || !("source" in entry) || !("target" in entry))
    return false;
  const { source, target } = entry;
  // Every link of every version so far stays inside one directory, which keeps the copied tree
  // movable.
  return typeof source === "string" && typeof target === "string" && dirname(source) === dirname(target);
}

/**
 * Trying is the only honest check: it sees permissions, mount options, missing libraries and the C
 * library at once.
 */
async function whyNotRunnable(
  nativeDirectory: string,
  identity: Identity | undefined,
): Promise<string | undefined> {
  const program = join(nativeDirectory, "bin", "postgres");
  try {
    const { exitCode, output } = await runProgram(program, ["--version"], identity);
    return exitCode === 0 ? undefined : tailOf(output);
  } catch (error) {
    if (error instanceof LocalPostgresError) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}

function cannotRun(native: NativePackage, reason: string): LocalPostgresError {
  return unsupported(
    `the PostgreSQL binaries in ${native.directory} do not run on this system. Use a PostgreSQL of your own by its ` +
      `URL, or install the missing parts. They print: ${reason}`,
  );
}
