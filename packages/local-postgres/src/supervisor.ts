/**
 * The process that owns one server: started detached by the first user, it listens on a control
 * socket and hands the connections to `Supervision`. It outlives any user and belongs to none. Its
 * command line is one JSON argument (see `SupervisorArguments`); its only output is one line saying
 * where it listens, that another supervisor was first, or why it failed.
 */
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { claim } from "./claim.js";
import { isInitialised } from "./data-directory.js";
import { toErrorMessage } from "./errors.js";
import { serverIdentity } from "./identity.js";
import { isSupervisorArguments, type Announcement } from "./launch.js";
import { chooseTemporaryBase, createRuntimeDirectory } from "./places.js";
import { Supervision } from "./supervision.js";

function announce(announcement: Announcement): void {
  process.stdout.write(`${JSON.stringify(announcement)}\n`);
}

function main(): void {
  process.umask(0o077);
  process.chdir("/");
  // The reader of our output may have ended; that must not end this process.
  process.stdout.on("error", () => {});
  process.stderr.on("error", () => {});
  const input: unknown = JSON.parse(process.argv[2] ?? "null");
  if (!isSupervisorArguments(input)) throw new Error("the supervisor is started by startLocalPostgres only");
  const { directory } = input.options;
  // Refuses a wrong directory before anything is written into it.
  if (directory !== undefined) isInitialised(directory, input.native.version.split(".", 1)[0] ?? "");
  const identity = serverIdentity(directory);
  const base = chooseTemporaryBase(identity);
  const runtime = createRuntimeDirectory(base, identity);
  let supervision: Supervision | undefined;
  const control = createServer((socket) => supervision?.accept(socket));
  control.listen(runtime.controlSocket, () => {
    try {
      if (directory !== undefined && !claim(directory, input.generation, runtime.controlSocket)) {
        rmSync(runtime.directory, { recursive: true, force: true });
        announce({ kind: "lost" });
        process.exit(0);
      }
      supervision = new Supervision(runtime, input, base, identity);
      announce({ kind: "listening", controlSocket: runtime.controlSocket });
    } catch (error) {
      rmSync(runtime.directory, { recursive: true, force: true });
      fail(error);
    }
  });
  control.once("error", (error) => {
    rmSync(runtime.directory, { recursive: true, force: true });
    fail(error);
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => void supervision?.end());
}

function fail(error: unknown): void {
  announce({ kind: "failed", error: toErrorMessage(error) });
  process.exitCode = 1;
}

try {
  main();
} catch (error) {
  fail(error);
}
