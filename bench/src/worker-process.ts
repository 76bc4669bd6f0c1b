/**
 * Starts the worker of a bench as a process of its own, as in production, and lets it drain what was enqueued.
 * The process is gone when `drain` settles, whatever happened: a worker that hangs or takes too long is killed.
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Order, Report } from "./worker.js";
import type { BenchDatabase } from "./server.js";

const longestDrainMs = 600_000;
const longestStopMs = 15_000;
const lookMs = 20;

export interface DrainRequest {
  readonly database: BenchDatabase;
  readonly definition: "job" | "machine";
  readonly concurrency: number;
  readonly expected: number;
  readonly profilePath: string | undefined;
  /** Aborted: the worker is killed at once. */
  readonly signal: AbortSignal;
}

export interface Drain {
  /** On the database's clock, from the registration of the worker to the last completion. */
  readonly seconds: number;
  /** CPU time of the worker process. */
  readonly workerCpuMs: number;
}

export async function drain(request: DrainRequest): Promise<Drain> {
  const { database, definition, concurrency, expected, profilePath, signal } = request;
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(longestDrainMs)]);
  const child = fork(new URL("worker.js", import.meta.url), {
    stdio: ["ignore", process.stderr, "inherit", "ipc"],
    signal: deadline,
    killSignal: "SIGKILL",
  });
  try {
    tell(child, { kind: "serve", url: database.url, definition, concurrency, expected, profilePath });
    const workerCpuMs = await untilExecuted(child);
    return { workerCpuMs, seconds: await untilCommitted(request, deadline) };
  } finally {
    await end(child);
  }
}

function tell(child: ChildProcess, order: Order): void {
  if (child.connected) child.send(order);
}

/** Answers with the CPU time that the worker used. */
function untilExecuted(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("message", (report: Report) => {
      if (report.kind === "executed") resolve(report.cpuMs);
      else reject(new Error(`the worker failed: ${report.message}`));
    });
    child.once("exit", () => reject(new Error("the worker process ended before its work was done")));
    // Not started, or aborted by the deadline: the reason says which.
    child.on("error", (error) => reject(error.cause instanceof Error ? error.cause : error));
  });
}

/** The last outcomes may still be on their way when their code has run. Rides runs_listing. */
async function untilCommitted({ database, expected }: DrainRequest, deadline: AbortSignal): Promise<number> {
  for (;;) {
    deadline.throwIfAborted();
    const { rows } = await database.observer.query<{ done: number; seconds: number }>(
      `select count(*)::float8 as done,
         extract(epoch from max(r.completed_at) - (select max(w.registered_at) from pawl.workers w))::float8 as seconds
       from pawl.runs r where r.status = 'done'`,
    );
    const { done, seconds } = rows[0]!;
    if (done === expected) return seconds;
    if (done > expected) throw new Error(`${done} runs are done, but only ${expected} were started`);
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  tell(child, { kind: "stop" });
  const timer = setTimeout(() => child.kill("SIGKILL"), longestStopMs);
  await exited;
  clearTimeout(timer);
}
