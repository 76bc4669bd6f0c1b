/**
 * Runs a short-lived program (initdb, a probe) as the server's user, and collects its output. The
 * environment starts empty: the user's PGPORT, PGOPTIONS and so on must not reach the server.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { systemCodeOf } from "./errors.js";
import { cannotBecome, type Identity } from "./identity.js";
import { unsupported } from "./platform.js";

export interface ProgramResult {
  exitCode: number | null;
  output: string;
}

const longestRunMs = 120_000;
const longestOutput = 100_000;

export function serverEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {
    LC_ALL: "C",
    TZ: "UTC",
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  };
  const libraryPath = process.env["LD_LIBRARY_PATH"];
  if (libraryPath !== undefined) environment["LD_LIBRARY_PATH"] = libraryPath;
  return environment;
}

/** Rejects only when the program could not be started at all. */
export function runProgram(
  program: string,
  programArguments: string[],
  identity: Identity | undefined,
  input = "",
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, programArguments, {
      cwd: "/",
      env: serverEnvironment(),
      stdio: ["pipe", "pipe", "pipe"],
      timeout: longestRunMs,
      ...identity,
    });
    let output = "";
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString("utf8")).slice(-longestOutput);
    };
    child.stdin.on("error", () => {}); // it may end without reading
    child.stdin.end(input);
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.once("error", (error) => reject(explainSpawnError(error, program, identity)));
    child.once("close", (exitCode) => resolve({ exitCode, output }));
  });
}

/**
 * Two failures of spawn mean that this system cannot run the server at all; others are given back
 * as they are.
 */
export function explainSpawnError(error: Error, program: string, identity: Identity | undefined): Error {
  const code = systemCodeOf(error);
  if (identity && (code === "EINVAL" || code === "EPERM")) return cannotBecome(identity, error);
  if (code === "ENOENT" && existsSync(program)) {
    return unsupported(
      "the PostgreSQL binaries need glibc, and this system has none (Alpine and other musl systems). Use an image " +
        "with glibc such as node:22-slim, or a PostgreSQL of your own by its URL",
      error,
    );
  }
  return error;
}
