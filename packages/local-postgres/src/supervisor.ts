/**
 * The process that owns one server: started detached by the first user, it listens on a control socket, runs
 * PostgreSQL, and ends both when no user has been connected for a moment. It outlives any user, belongs to none, and
 * removes every temporary file before it goes. Its command line is one JSON argument (see `SupervisorArguments`); its
 * only output is one line saying where it listens, that another supervisor was first, or why it failed.
 */
import { rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { claim } from "./claim.js";
import { isInitialised } from "./data-directory.js";
import { toErrorMessage } from "./errors.js";
import { serverIdentity } from "./identity.js";
import { chooseTemporaryBase, createRuntimeDirectory, type RuntimePaths } from "./places.js";
import type { Announcement, SupervisorArguments } from "./launch.js";
import {
  protocolVersion,
  receiveLines,
  sendLine,
  type FromUser,
  type Reply,
  type Request,
} from "./protocol.js";
import { Server } from "./server.js";
import { sweepLeftovers } from "./sweep.js";
import { trustedCache } from "./trusted-cache.js";
import { Watcher } from "./watcher.js";

/** How long a server without users waits for the next one: a test run may hand over from process to process. */
const graceMs = 1000;
/** The first user may be slow to connect, or dead. */
const firstUserMs = 10_000;

class Supervisor {
  readonly #runtime: RuntimePaths;
  readonly #server: Server;
  readonly #watcher: Watcher;
  readonly #isThrowAway: boolean;
  readonly #booted: Promise<void>;
  readonly #users = new Set<Socket>();
  readonly #connections = new Set<Socket>();
  #idleTimer: NodeJS.Timeout;
  #isEnding = false;

  constructor(runtime: RuntimePaths, input: SupervisorArguments, base: string) {
    this.#runtime = runtime;
    this.#isThrowAway = input.options.directory === undefined;
    this.#watcher = new Watcher(runtime.directory, this.#isThrowAway ? "QUIT" : "INT");
    this.#server = new Server({
      options: input.options,
      native: input.native,
      identity: serverIdentity(input.options.directory),
      runtime,
      cache: trustedCache(base),
      onProcessChange: (pid) => this.#tellProcess(pid),
    });
    this.#booted = this.#server.boot();
    this.#booted.then(
      () => sweepLeftovers(base),
      // Those who wait are told; whoever comes later must not be given an old failure.
      () => setImmediate(() => void this.end()),
    );
    this.#idleTimer = setTimeout(() => void this.end(), firstUserMs);
  }

  accept(socket: Socket): void {
    this.#connections.add(socket);
    socket.on("error", () => {}); // "close" follows
    socket.once("close", () => {
      this.#connections.delete(socket);
      if (this.#users.delete(socket) && this.#users.size === 0) this.#waitForNextUser();
    });
    receiveLines<FromUser>(socket, ({ id, request }) => {
      if (request.kind === "attach" && !this.#isEnding) {
        this.#users.add(socket);
        clearTimeout(this.#idleTimer);
      }
      void this.#answer(socket, request).then((reply) => reply && sendLine(socket, { id, reply }));
    });
  }

  #waitForNextUser(): void {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => void this.end(), graceMs);
  }

  /** No reply: the connection closes instead. */
  async #answer(socket: Socket, request: Request): Promise<Reply | undefined> {
    if (request.kind === "release") return void this.#release(socket);
    if (this.#isEnding) return { kind: "ending" };
    try {
      await this.#booted;
      switch (request.kind) {
        case "attach": {
          if (request.protocolVersion !== protocolVersion) throw otherVersion(this.#server.dataDirectory);
          if (!this.#isThrowAway && request.directory !== this.#server.dataDirectory)
            return { kind: "otherDirectory" };
          const server = await this.#server.attach(request);
          this.#tellProcess(this.#server.pid);
          return { kind: "attached", server };
        }
        case "restart":
          await this.#server.restart(request.mode);
          return { kind: "done" };
        case "kill":
          await this.#server.stop("immediate");
          return { kind: "done" };
        case "start":
          await this.#server.start();
          return { kind: "done" };
      }
    } catch (error) {
      return { kind: "failed", error: toErrorMessage(error) };
    }
  }

  /** The last user's farewell needs no grace: it is answered by the end of this process. */
  #release(socket: Socket): void {
    if (this.#users.size > 1) {
      this.#users.delete(socket);
      socket.end();
    } else {
      void this.end();
    }
  }

  #tellProcess(pid: number | undefined): void {
    this.#watcher.watch(pid);
    if (pid === undefined) return;
    for (const user of this.#users) sendLine(user, { pid });
  }

  async end(): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    // Nobody will read a throw-away directory again, so that there is nothing worth a checkpoint.
    await this.#server.stop(this.#isThrowAway ? "immediate" : "fast");
    this.#watcher.dismiss();
    rmSync(this.#runtime.directory, { recursive: true, force: true, maxRetries: 5 });
    for (const connection of this.#connections) connection.end();
    process.exit(0);
  }
}

function otherVersion(directory: string): Error {
  return new Error(
    `the server on ${directory} was started by another version of @pawl/local-postgres. Install one version in the ` +
      "project, or stop the server's other users first",
  );
}

function announce(announcement: Announcement): void {
  process.stdout.write(`${JSON.stringify(announcement)}\n`);
}

function main(): void {
  process.umask(0o077);
  process.chdir("/");
  // The one who reads our output may be gone; that is no reason to die.
  process.stdout.on("error", () => {});
  const input = JSON.parse(process.argv[2] ?? "") as SupervisorArguments;
  const { directory } = input.options;
  // Refuses a wrong directory before anything is written into it.
  if (directory !== undefined) isInitialised(directory, input.native.version.split(".", 1)[0] ?? "");
  const identity = serverIdentity(directory);
  const base = chooseTemporaryBase(identity);
  const runtime = createRuntimeDirectory(base, identity);
  let supervisor: Supervisor | undefined;
  const control = createServer((socket) => supervisor?.accept(socket));
  control.listen(runtime.controlSocket, () => {
    try {
      if (directory !== undefined && !claim(directory, input.generation, runtime.controlSocket)) {
        rmSync(runtime.directory, { recursive: true, force: true });
        announce({ kind: "lost" });
        process.exit(0);
      }
      supervisor = new Supervisor(runtime, input, base);
      announce({ kind: "listening", controlSocket: runtime.controlSocket });
    } catch (error) {
      rmSync(runtime.directory, { recursive: true, force: true });
      fail(error);
    }
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => void supervisor?.end());
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
