/**
 * The files of this package that it starts as programs. A bundle has none of them: this file says so
 * before anything else is looked for.
 */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { LocalPostgresError } from "./errors.js";

/** The program of the supervisor, which lies beside this file. */
export function supervisorScript(): string {
  try {
    const script = fileURLToPath(new URL("./supervisor.js", import.meta.url));
    if (existsSync(script)) return script;
  } catch {
    // A bundle in CommonJS has no import.meta.url.
  }
  throw new LocalPostgresError(
    "StartFailed",
    "@pawl/local-postgres starts programs from its own files and cannot be part of a bundle: " +
      "mark it as external, or use a PostgreSQL of your own by its URL",
  );
}
