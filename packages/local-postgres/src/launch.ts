/**
 * Starts a supervisor, detached from the calling process: it shares no terminal, process group,
 * working directory or output with it. So the caller can end at any time, and its readers see the
 * end of its output.
 */
import { spawn } from "node:child_process";
import { LocalPostgresError, tailOf, type ErrorMessage } from "./errors.js";
import type { ValidOptions } from "./options.js";
import { supervisorScript } from "./own-files.js";
import type { NativePackage } from "./platform.js";

export interface SupervisorArguments {
  options: ValidOptions;
  native: NativePackage;
  /** The number under which it claims a persistent directory. */
  generation: number;
}

export type Announcement =
  | { kind: "listening"; controlSocket: string }
  | { kind: "lost" }
  | { kind: "failed"; error: ErrorMessage };

export function launchSupervisor(input: SupervisorArguments): Promise<Announcement> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [supervisorScript(), JSON.stringify(input)], {
      cwd: "/",
      detached: true,
      env: supervisorEnvironment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let complaints = "";
    child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString("utf8")));
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
      if (!output.includes("\n")) return;
      // From here on nothing of the child keeps this process alive.
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      const announcement = readAnnouncement(output);
      if (announcement) resolve(announcement);
      else reject(noSupervisor(`it said ${output}`));
    });
    child.once("error", (error) => reject(noSupervisor(error.message)));
    child.once("close", (exitCode) =>
      reject(noSupervisor(`it ended with ${exitCode}: ${tailOf(complaints)}`)),
    );
  });
}

function readAnnouncement(line: string): Announcement | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    return isAnnouncement(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isAnnouncement(value: unknown): value is Announcement {
  return typeof value === "object" && value !== null && "kind" in value;
}

export function isSupervisorArguments(value: unknown): value is SupervisorArguments {
  return typeof value === "object" && value !== null && "options" in value && "native" in value;
}

/**
 * Node's options in the user's process (a debugger's port, loaders, coverage) are not meant for a
 * process that outlives it.
 */
function supervisorEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("NODE_")));
}

function noSupervisor(reason: string): LocalPostgresError {
  return new LocalPostgresError(
    "StartFailed",
    `the supervisor process of the local Postgres did not start: ${reason}`,
  );
}
