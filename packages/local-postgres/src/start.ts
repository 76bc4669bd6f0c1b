/**
 * `startLocalPostgres`: joins the server that already runs on the named directory, or launches a
 * supervisor for a new one and joins that. The returned handle is one user of the server; it counts
 * until `stop()`, or until the process ends or is killed.
 */
import { mkdirSync, realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { latestRecord } from "./claim.js";
import { ControlConnection } from "./control-connection.js";
import { LocalPostgresError, toLocalPostgresError } from "./errors.js";
import { launchSupervisor } from "./launch.js";
import { invalid, validateOptions, type LocalPostgresOptions, type ValidOptions } from "./options.js";
import { findNativePackage, type NativePackage } from "./platform.js";
import { protocolVersion, type Attached, type Request } from "./protocol.js";
import { requireTrustedDirectory } from "./trust.js";

export interface LocalPostgres {
  /** A URL that node-postgres understands. */
  readonly url: string;
  /** The data directory. */
  readonly directory: string;
  /**
   * The process id of the postmaster, current at call time; after `kill()` the one that was killed.
   */
  readonly pid: number;
  /**
   * Stops the server in that mode (default `"fast"`) and starts it on the same directory at the
   * same address.
   */
  restart(options?: { mode?: "fast" | "immediate" }): Promise<void>;
  /** Shuts the server down at once, as a crash would, and leaves it down. */
  kill(): Promise<void>;
  /** Starts the server again after `kill()`; does nothing when it runs. */
  start(): Promise<void>;
  /** Releases the server. If this was its last user, resolves when the server has ended. */
  stop(): Promise<void>;
}

/**
 * An attempt fails only if a server has just ended or another process was first, so a few are
 * enough.
 */
const joinAttempts = 20;

export async function startLocalPostgres(options: LocalPostgresOptions = {}): Promise<LocalPostgres> {
  const valid = validateOptions(options);
  const native = findNativePackage();
  if (valid.directory !== undefined) valid.directory = createDirectory(valid.directory);
  for (let attempt = 1; attempt <= joinAttempts; attempt++) {
    const handle = await joinOrLaunch(valid, native);
    if (handle) return handle;
  }
  throw new LocalPostgresError(
    "StartFailed",
    "the server ended each time this process tried to join it; call startLocalPostgres again",
  );
}

function createDirectory(directory: string): string {
  const path = resolve(directory);
  try {
    mkdirSync(dirname(path), { recursive: true });
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const real = realpathSync(path);
    requireTrustedDirectory(real);
    return real;
  } catch (error) {
    throw toLocalPostgresError(error, `the data directory ${path} could not be created`);
  }
}

/** Undefined: a race was lost, or the server was on its way out; look again. */
async function joinOrLaunch(
  options: ValidOptions,
  native: NativePackage,
): Promise<LocalPostgres | undefined> {
  const record = options.directory === undefined ? undefined : readRecord(options.directory);
  if (record?.controlSocket !== undefined) {
    const outcome = await join(record.controlSocket, options);
    if (outcome !== "nobody") return outcome;
  }
  const announcement = await launchSupervisor({ options, native, generation: (record?.generation ?? 0) + 1 });
  if (announcement.kind === "failed")
    throw new LocalPostgresError(announcement.error.code, announcement.error.message);
  if (announcement.kind === "lost") return undefined;
  const outcome = await join(announcement.controlSocket, options);
  return outcome === "nobody" ? undefined : outcome;
}

function readRecord(directory: string): ReturnType<typeof latestRecord> {
  try {
    return latestRecord(directory);
  } catch (error) {
    throw toLocalPostgresError(
      error,
      `cannot read the data directory ${directory}; check its owner and mode`,
    );
  }
}

async function join(controlSocket: string, options: ValidOptions): Promise<Handle | "nobody" | undefined> {
  const connection = await ControlConnection.open(controlSocket);
  if (connection === undefined) return "nobody";
  const reply = await connection.request({ kind: "attach", protocolVersion, ...options });
  if (reply?.kind === "attached") return new Handle(connection, reply.server);
  if (reply?.kind === "ending") await connection.untilClosed();
  connection.close();
  if (reply?.kind === "otherDirectory") return "nobody";
  if (reply?.kind === "failed") throw new LocalPostgresError(reply.error.code, reply.error.message);
  return undefined;
}

class Handle implements LocalPostgres {
  readonly url: string;
  readonly directory: string;
  readonly #connection: ControlConnection;
  #stopped: Promise<void> | undefined;

  constructor(connection: ControlConnection, server: Attached) {
    this.#connection = connection;
    this.url = server.url;
    this.directory = server.directory;
  }

  get pid(): number {
    return this.#connection.pid;
  }

  async restart(options: { mode?: "fast" | "immediate" } = {}): Promise<void> {
    const { mode = "fast" } = options;
    if (mode !== "fast" && mode !== "immediate") {
      throw invalid(`restart: mode must be "fast" or "immediate", got ${JSON.stringify(mode)}`);
    }
    await this.#ask({ kind: "restart", mode });
  }

  async kill(): Promise<void> {
    await this.#ask({ kind: "kill" });
  }

  async start(): Promise<void> {
    await this.#ask({ kind: "start" });
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#release();
    return this.#stopped;
  }

  async #release(): Promise<void> {
    void this.#connection.request({ kind: "release" });
    await this.#connection.untilClosed();
  }

  async #ask(request: Request): Promise<void> {
    if (this.#stopped)
      throw new LocalPostgresError("StartFailed", "this handle was stopped; start a new one");
    const reply = await this.#connection.request(request);
    if (reply?.kind === "failed") throw new LocalPostgresError(reply.error.code, reply.error.message);
    if (reply?.kind !== "done") {
      throw new LocalPostgresError(
        "StartFailed",
        `the supervisor of the server on ${this.directory} is gone. Call startLocalPostgres again`,
      );
    }
  }
}
