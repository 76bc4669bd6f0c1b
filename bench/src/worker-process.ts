/**
 * Starts the worker of a bench as a separate process, as in production. The caller stops it. A
 * worker that hangs or takes too long is killed, so that no process is left behind. Used by the
 * drains and by the benches that watch running workers.
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { ServeOptions } from "pawl";
import type { Servable } from "./definitions.js";
import type { BenchDatabase } from "./server.js";
import type { Order, Progress, Report } from "./worker.js";

const longestWorkMs = 600_000;
const longestStopMs = 15_000;

export interface WorkerRequest {
  readonly database: BenchDatabase;
  readonly definition: Servable;
  readonly concurrency: number;
  /** How many runs are to end in its hands. */
  readonly expected: number;
  readonly profilePath: string | undefined;
  /** Beside the URL and the default queue, which they may replace. */
  readonly options?: ServeOptions;
  /** How long it may work. */
  readonly longestMs?: number;
  /** Hears all the time how far it is. */
  readonly onProgress?: (progress: Progress) => void;
  /** Aborted: the worker is killed at once. */
  readonly signal: AbortSignal;
}

export interface WorkerProcess {
  /** Resolves when the expected runs were executed, with the CPU time of the process. */
  readonly executed: Promise<number>;
  /** Aborted when waiting for it must end. */
  readonly deadline: AbortSignal;
  /** Resolves when the process is gone. */
  stop(): Promise<void>;
}

/** Resolves when the worker serves. */
export async function startWorker(request: WorkerRequest): Promise<WorkerProcess> {
  const { database, definition, concurrency, expected, profilePath, onProgress, options = {} } = request;
  const deadline = AbortSignal.any([request.signal, AbortSignal.timeout(request.longestMs ?? longestWorkMs)]);
  const child = fork(new URL("worker.js", import.meta.url), {
    stdio: ["ignore", process.stderr, "inherit", "ipc"],
    signal: deadline,
    killSignal: "SIGKILL",
  });
  const ready = reported(child, "ready");
  const executed = reported(child, "executed").then(({ cpuMs }) => cpuMs);
  executed.catch(() => {}); // not everybody waits for it
  if (onProgress !== undefined) {
    child.on("message", (report: Report) => void (report.kind === "progress" && onProgress(report)));
  }
  const tellsProgress = onProgress !== undefined;
  const { url } = database;
  tell(child, {
    kind: "serve",
    url,
    definition,
    concurrency,
    options,
    expected,
    profilePath,
    tellsProgress,
  });
  const worker = { executed, deadline, stop: () => end(child) };
  try {
    await ready;
    return worker;
  } catch (error) {
    await worker.stop();
    throw error;
  }
}

function tell(child: ChildProcess, order: Order): void {
  if (child.connected) child.send(order);
}

/** Resolves with the first report of this kind. */
function reported<Kind extends Report["kind"]>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<Report, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    child.on("message", (report: Report) => {
      if (isOfKind(report, kind)) resolve(report);
      else if (report.kind === "failed") reject(new Error(`the worker failed: ${report.message}`));
    });
    child.once("exit", () => reject(new Error("the worker process ended before its work was done")));
    // Not started, or aborted by the deadline: the reason says which.
    child.on("error", (error) => reject(error.cause instanceof Error ? error.cause : error));
  });
}

function isOfKind<Kind extends Report["kind"]>(
  report: Report,
  kind: Kind,
): report is Extract<Report, { kind: Kind }> {
  return report.kind === kind;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  tell(child, { kind: "stop" });
  const timer = setTimeout(() => child.kill("SIGKILL"), longestStopMs);
  await exited;
  clearTimeout(timer);
}
