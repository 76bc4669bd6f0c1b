/**
 * One worker process of the demo: its requests, its end, and two ways to end it. `onRequest`
 * answers its requests. If the process ends unasked, `failed` rejects. Used by `demo.ts`.
 */

import { type ChildProcess, fork } from "node:child_process";
import type { FromWorker, Request, ToWorker } from "./outside.js";

export interface WorkerListener {
  /** Gives the reference to answer with, or null: it is never answered. */
  onRequest(request: Request): Promise<string | null>;
  onLog(message: string): void;
}

export class WorkerProcess {
  readonly pid: number;
  /** Resolves when the worker is registered. */
  readonly ready: Promise<void>;
  /** Rejects if the worker ends by itself. */
  readonly failed: Promise<never>;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #isEnding = false;

  constructor(url: string, listener: WorkerListener) {
    const child = fork(new URL("./demo-worker.js", import.meta.url), {
      env: { ...process.env, PAWL_URL: url },
      execArgv: [],
    });
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.#ended = new Promise((resolve) => {
      child.once("exit", () => resolve());
    });
    this.ready = new Promise((resolve) => {
      child.on("message", (message: FromWorker) => {
        if (message.kind === "ready") resolve();
      });
    });
    this.failed = new Promise((_, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        const how = signal ?? `exit code ${code}`;
        if (!this.#isEnding) reject(new Error(`worker process ${this.pid} ended by itself (${how})`));
      });
      child.on("message", (message: FromWorker) => {
        if (message.kind === "log") listener.onLog(message.message);
        if (message.kind !== "request") return;
        listener.onRequest(message).then((answer) => this.#answer(message.id, answer), reject);
      });
    });
    // Callers that wait for the worker race against it.
    this.failed.catch(() => {});
  }

  /** Kill -9: the process has no chance to do anything more. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** The graceful way. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    this.#send({ kind: "stop" });
    await this.#ended;
  }

  #answer(id: number, reference: string | null): void {
    if (reference !== null) this.#send({ kind: "answer", id, reference });
  }

  #send(message: ToWorker): void {
    // A worker that has just ended needs no answer.
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}
