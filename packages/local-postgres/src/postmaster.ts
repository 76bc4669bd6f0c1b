/**
 * One PostgreSQL server process on one data directory at one address. Its supervisor starts, stops
 * and restarts it. `start` resolves when the server accepts statements, or throws with the end of
 * its log.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { diagnoseOutput, LocalPostgresError } from "./errors.js";
import { canReach, type Identity } from "./identity.js";
import { directoryMark } from "./orphan.js";
import { explainSpawnError, serverEnvironment } from "./run-program.js";

export interface LaunchPlan {
  binaries: string;
  dataDirectory: string;
  identity: Identity | undefined;
  socketDirectory: string;
  hbaFile: string;
  /** Also the name of the unix socket. */
  port: number;
  listensOnTcp: boolean;
  settings: Record<string, string>;
  logFile: string;
}

export type StopMode = "fast" | "immediate";

/**
 * Crash recovery of a large directory takes its time; a server that says nothing for this long is
 * stuck.
 */
const longestStartMs = 300_000;
/** Short enough that a server without users ends within 5 s. */
const patienceMs = { fast: 2000, immediate: 1000 };

/** The eighth line of postmaster.pid. */
const statusLine = 7;

export class Postmaster {
  readonly plan: LaunchPlan;
  #child: ChildProcess | undefined;
  readonly #onProcessChange: (pid: number | undefined) => void;

  /** `onProcessChange` is called when a process starts, and when it has ended. */
  constructor(plan: LaunchPlan, onProcessChange: (pid: number | undefined) => void) {
    this.plan = plan;
    this.#onProcessChange = onProcessChange;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get socketPath(): string {
    return join(this.plan.socketDirectory, `.s.PGSQL.${this.plan.port}`);
  }

  async start(): Promise<void> {
    // The backends of a killed postmaster need a moment to notice, and hold its shared memory until
    // then.
    for (const deadline = Date.now() + 5000; ; await delay(50)) {
      const logStart = statSync(this.plan.logFile, { throwIfNoEntry: false })?.size ?? 0;
      await this.#launch();
      if (await this.#becomesReady()) return;
      const log = readFileSync(this.plan.logFile).subarray(logStart).toString("utf8");
      const isHeldByBackends = /pre-existing shared memory block .* is still in use/.test(log);
      if (!isHeldByBackends || Date.now() > deadline) throw diagnoseOutput(this.#description(), log);
    }
  }

  async #launch(): Promise<void> {
    const { binaries, dataDirectory, identity, logFile } = this.plan;
    const program = join(binaries, "bin", "postgres");
    const log = openSync(logFile, "a", 0o600);
    try {
      const child = spawn(program, this.#arguments(), {
        cwd: dataDirectory,
        env: serverEnvironment(),
        stdio: ["ignore", log, log],
        detached: true, // its own session: a signal to the supervisor's group is not a signal to the server
        ...identity,
      });
      this.#child = child;
      child.once("exit", () => {
        this.#child = undefined;
        this.#onProcessChange(undefined);
      });
      if (child.pid !== undefined) this.#onProcessChange(child.pid);
      await once(child, "spawn").catch((error: unknown) => {
        this.#child = undefined;
        throw error instanceof Error ? explainSpawnError(error, program, identity) : error;
      });
    } finally {
      closeSync(log);
    }
  }

  #arguments(): string[] {
    const { plan } = this;
    const settings: Record<string, string> = {
      ...plan.settings,
      listen_addresses: plan.listensOnTcp ? "127.0.0.1" : "",
      port: String(plan.port),
      unix_socket_directories: `"${plan.socketDirectory}"`,
      hba_file: plan.hbaFile,
    };
    const asArguments = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    return ["-D", this.#directoryArgument(), ...asArguments, "-c", directoryMark(plan.dataDirectory)];
  }

  /**
   * A server that root started as another user may be unable to walk to a directory below, say,
   * /root, although it owns the directory itself. On Linux it can begin inside: the working
   * directory is entered before root is given up.
   */
  #directoryArgument(): string {
    const { dataDirectory, identity } = this.plan;
    if (canReach(identity, dataDirectory)) return dataDirectory;
    if (process.platform === "linux") return "/proc/self/cwd";
    throw new LocalPostgresError(
      "StartFailed",
      `user id ${identity?.uid}, which runs PostgreSQL for root, cannot reach ${dataDirectory}. Name a directory that ` +
        "everybody can pass through, or run as an ordinary user",
    );
  }

  /** PostgreSQL says so in its lock file; asking by connecting would fill its log with refusals. */
  async #becomesReady(): Promise<boolean> {
    const lockFile = join(this.plan.dataDirectory, "postmaster.pid");
    for (const deadline = Date.now() + longestStartMs; this.#child !== undefined; await delay(5)) {
      const lines = readIfExists(lockFile).split("\n");
      const isCurrent = Number(lines[0]) === this.#child.pid;
      if (isCurrent && /^(ready|standby)/.test(lines[statusLine] ?? "")) return true;
      if (Date.now() > deadline) await this.stop("immediate");
    }
    return false;
  }

  /** Ends the server for certain: a mode that takes too long is followed by a harsher one. */
  async stop(mode: StopMode): Promise<void> {
    if (mode === "fast") await this.#signal("SIGINT", patienceMs.fast);
    await this.#signal("SIGQUIT", patienceMs.immediate);
    await this.#signal("SIGKILL", Number.POSITIVE_INFINITY);
  }

  async #signal(signal: NodeJS.Signals, timeoutMs: number): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await (Number.isFinite(timeoutMs) ? Promise.race([exited, delay(timeoutMs)]) : exited);
  }

  #description(): string {
    const { dataDirectory, listensOnTcp, port } = this.plan;
    return `PostgreSQL on ${dataDirectory}${listensOnTcp ? ` at port ${port}` : ""} could not be started`;
  }
}

function readIfExists(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
