/**
 * Holds the lease of one worker id: starts the beating thread (or, where threads cannot start, beats in this loop and
 * says so once), passes on what the beats report, and declares the lease lost when no beat has been confirmed for
 * 0.8 of it, or a beat was told that it came too late. Judged by the time a confirmed beat was sent, read from shared
 * memory: a blocked main thread loses nothing as long as the thread beats. Owned by the worker.
 */

import { Worker as Thread } from "node:worker_threads";
import type { Logger } from "../define/logger.js";
import type { BeatAddress } from "../store/beats.js";
import { beat, type BeatReport, type ConfirmedBeat } from "./heartbeat-thread.js";
import { monotonicMs } from "./monotonic.js";

export type { ConfirmedBeat };

const lostAfter = 0.8;

export interface HeartbeatOptions {
  readonly address: BeatAddress;
  readonly workerId: string;
  readonly intervalMs: number;
  readonly leaseMs: number;
  readonly logger: Logger;
  /** The lease cannot be relied on any more. Called once. */
  onLost(reason: string): void;
  /** A beat was confirmed. `isBack`: the one before it had failed. */
  onBeat(confirmed: ConfirmedBeat, isBack: boolean): void;
}

let toldOfMainLoop = false;

export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #confirmed = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
  readonly #watch: NodeJS.Timeout;
  readonly #beating: { stop(): Promise<void> };
  #isLost = false;
  #hasFailed = false;
  #stopped: Promise<void> | undefined;

  /** The worker's row must be committed already. */
  constructor(options: HeartbeatOptions) {
    this.#options = options;
    new Float64Array(this.#confirmed)[0] = monotonicMs();
    this.#beating = this.#startThread();
    this.#watch = setInterval(() => this.#check(), Math.max(10, options.leaseMs / 40));
    this.#watch.unref();
  }

  stop(): Promise<void> {
    this.#isLost = true;
    clearInterval(this.#watch);
    this.#stopped ??= this.#beating.stop();
    return this.#stopped;
  }

  #check(): void {
    const silentMs = monotonicMs() - new Float64Array(this.#confirmed)[0]!;
    if (silentMs > this.#options.leaseMs * lostAfter) {
      this.#lose(`no heartbeat was confirmed for ${Math.round(silentMs)} ms`);
    }
  }

  #lose(reason: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.onLost(reason);
  }

  #hear(report: BeatReport): void {
    if (this.#isLost) return;
    if (report.kind === "failed") {
      this.#hasFailed = true;
      this.#options.logger.warn({ reason: report.message }, "pawl: heartbeat failed, trying again");
    } else if (report.kind === "alive") {
      const isBack = this.#hasFailed;
      this.#hasFailed = false;
      this.#options.onBeat(report.confirmed, isBack);
    } else {
      this.#lose("the lease had passed when the heartbeat came");
    }
  }

  #startThread(): { stop(): Promise<void> } {
    const { address, workerId, intervalMs } = this.#options;
    const data = { address, workerId, intervalMs, confirmed: this.#confirmed };
    const inMainLoop = (reason: unknown): { stop(): Promise<void> } => {
      if (!toldOfMainLoop) {
        toldOfMainLoop = true;
        this.#options.logger.warn(
          { err: reason },
          "pawl: the heartbeat thread cannot start, beating in the main loop: a step that blocks it may cost the lease",
        );
      }
      return beat(data, (report) => this.#hear(report));
    };
    let thread: Thread;
    try {
      // The thread needs nothing of the process but the driver: no flags such as --inspect or a test's loader.
      thread = new Thread(new URL("./heartbeat-thread.js", import.meta.url), {
        workerData: data,
        execArgv: [],
        name: "pawl-heartbeat",
      });
    } catch (error) {
      return inMainLoop(error);
    }
    thread.unref();
    let replacement: { stop(): Promise<void> } | undefined;
    let isStopped = false;
    thread.on("message", (report: BeatReport) => this.#hear(report));
    thread.on("error", (error) => {
      if (!isStopped) replacement = inMainLoop(error);
    });
    return {
      stop: async () => {
        isStopped = true;
        if (replacement !== undefined) {
          await replacement.stop();
          return;
        }
        const ended = new Promise((resolve) => thread.once("exit", resolve));
        thread.postMessage("stop");
        // A beat may hang in a database that does not answer.
        const deadline = setTimeout(() => void thread.terminate(), 1_000);
        await ended;
        clearTimeout(deadline);
      },
    };
  }
}
