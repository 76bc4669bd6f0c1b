/**
 * The life of one server, driven by the connections of its users. It boots when the supervisor
 * starts, and ends when no user has been connected for a moment. It leaves no process and no
 * temporary file.
 */
import { rmSync } from "node:fs";
import type { Socket } from "node:net";
import { toErrorMessage } from "./errors.js";
import type { Identity } from "./identity.js";
import type { SupervisorArguments } from "./launch.js";
import type { RuntimePaths } from "./places.js";
import {
  isFromUser,
  protocolVersion,
  receiveLines,
  sendLine,
  type AttachRequest,
  type Reply,
  type Request,
} from "./protocol.js";
import { Server } from "./server.js";
import { sweepLeftovers } from "./sweep.js";
import { trustedCache } from "./trusted-cache.js";
import { Watcher } from "./watcher.js";

/**
 * How long a server without users waits for the next one: a test run may hand over from process to
 * process.
 */
const graceMs = 1000;
/**
 * The first user connects at once, unless it was killed meanwhile; one that comes too late launches
 * another.
 */
const firstUserMs = 3000;

export class Supervision {
  readonly #runtime: RuntimePaths;
  readonly #server: Server;
  readonly #watcher: Watcher;
  readonly #isThrowAway: boolean;
  readonly #booted: Promise<void>;
  readonly #users = new Set<Socket>();
  readonly #connections = new Set<Socket>();
  #idleTimer: NodeJS.Timeout;
  #hasFailed = false;
  #isEnding = false;

  constructor(
    runtime: RuntimePaths,
    input: SupervisorArguments,
    base: string,
    identity: Identity | undefined,
  ) {
    this.#runtime = runtime;
    this.#isThrowAway = input.options.directory === undefined;
    this.#watcher = new Watcher(runtime.directory, this.#isThrowAway ? "QUIT" : "INT");
    this.#server = new Server({
      options: input.options,
      native: input.native,
      identity,
      runtime,
      cache: trustedCache(base),
      onProcessChange: (pid) => this.#tellProcess(pid),
    });
    this.#booted = this.#server.boot();
    this.#booted.then(
      () => sweepLeftovers(base),
      () => (this.#hasFailed = true),
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
    receiveLines(socket, (message) => {
      if (!isFromUser(message)) return;
      const { id, request } = message;
      if (request.kind === "release") {
        this.#release(socket);
        return;
      }
      if (request.kind === "attach" && !this.#isEnding) {
        this.#users.add(socket);
        clearTimeout(this.#idleTimer);
      }
      void this.#reply(socket, id, request);
    });
  }

  async #reply(socket: Socket, id: number, request: Exclude<Request, { kind: "release" }>): Promise<void> {
    sendLine(socket, { id, reply: await this.#answer(request) });
    // All waiting users get the failure in this turn; later users must not get an old one.
    if (this.#hasFailed) setImmediate(() => void this.end());
  }

  #waitForNextUser(): void {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => void this.end(), graceMs);
  }

  async #answer(request: Exclude<Request, { kind: "release" }>): Promise<Reply> {
    if (this.#isEnding) return { kind: "ending" };
    try {
      await this.#booted;
      return await this.#carryOut(request);
    } catch (error) {
      return { kind: "failed", error: toErrorMessage(error) };
    }
  }

  async #carryOut(request: Exclude<Request, { kind: "release" }>): Promise<Reply> {
    if (request.kind === "attach") return this.#attach(request);
    if (request.kind === "restart") await this.#server.restart(request.mode);
    else if (request.kind === "kill") await this.#server.stop("immediate");
    else await this.#server.start();
    return { kind: "done" };
  }

  async #attach(request: AttachRequest): Promise<Reply> {
    const { dataDirectory } = this.#server;
    if (request.protocolVersion !== protocolVersion) throw otherVersion(dataDirectory);
    if (!this.#isThrowAway && request.directory !== dataDirectory) return { kind: "otherDirectory" };
    const server = await this.#server.attach(request);
    this.#tellProcess(this.#server.pid);
    return { kind: "attached", server };
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
    // Nobody reads a throw-away directory again, so it needs no checkpoint.
    try {
      await this.#server.end(this.#isThrowAway ? "immediate" : "fast");
      rmSync(this.#runtime.directory, { recursive: true, force: true, maxRetries: 5 });
      this.#watcher.dismiss();
      for (const connection of this.#connections) connection.end();
    } finally {
      process.exit(); // without a farewell the watcher does what could not be done here
    }
  }
}

function otherVersion(directory: string): Error {
  return new Error(
    `the server on ${directory} was started by another version of @pawl/local-postgres. Install one version in the ` +
      "project, or stop the server's other users first",
  );
}
