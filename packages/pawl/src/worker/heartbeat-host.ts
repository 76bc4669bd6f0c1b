/**
 * The one heartbeat thread of the process, for all its workers: begun with the first of them, ended with the last, begun
 * again if it dies, with all who beat in it. Where no thread can start (a bundle without its file, options that cannot be
 * sent to it), the main loop beats and says so once. Used by `heartbeat.ts`.
 *
 * One thread, because a thread per worker fed the overload that had cost the lease: 25 workers on 2 starved cores lost 243
 * leases of 2 s in 40 s, and lose none with one.
 */

import { Worker as Thread } from "node:worker_threads";
import type { Logger } from "../values/logger.js";
import {
  beatAll,
  type BeatOptions,
  type BeatReport,
  type Notice,
  type Order,
  threadMark,
} from "./heartbeat-thread.js";
import { RetryDelay } from "../timing/retry-delay.js";

/** A beat may hang in a database that does not answer: who stops does not wait for longer. */
const endMs = 1_000;
/** A thread that lived for this long was none of those that die at once. */
const steadyMs = 60_000;

/** One worker id that is beaten for. */
interface Member {
  readonly options: BeatOptions;
  readonly hear: (report: BeatReport) => void;
  isRegistered: boolean;
  /** Beaten for in the main loop, whatever the others do. */
  isLocal: boolean;
  onEnded?: () => void;
}

let shared: HeartbeatHost | undefined;
let lastKey = 0;
let toldOfMainLoop = false;

export class HeartbeatHost {
  readonly #logger: Logger;
  readonly #members = new Map<number, Member>();
  readonly #retryDelay = new RetryDelay();
  readonly #inMainLoop = beatAll((notice) => this.#hear(notice));
  #users = 0;
  #thread: Thread | null = null;
  /** No thread can start: the main loop beats for all. */
  #hasNoThread = false;
  #restart: NodeJS.Timeout | undefined;

  private constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The host of this process, for one worker more. */
  static join(logger: Logger): HeartbeatHost {
    if (shared === undefined) {
      shared = new HeartbeatHost(logger);
      shared.#startThread();
    }
    shared.#users++;
    return shared;
  }

  /** A worker has stopped beating for good; the last ends the thread. */
  async leave(): Promise<void> {
    if (--this.#users > 0) return;
    if (shared === this) shared = undefined;
    clearTimeout(this.#restart);
    const thread = this.#thread;
    this.#thread = null;
    if (thread === null) return;
    const ended = new Promise((resolve) => thread.once("exit", resolve));
    thread.postMessage({ kind: "stop" } satisfies Order);
    const deadline = setTimeout(() => void thread.terminate(), endMs);
    await ended;
    clearTimeout(deadline);
  }

  /** Beats for a worker id, whose row need not be there yet. Answers how to go on with it. */
  begin(options: BeatOptions, hear: Member["hear"]): { registered(): void; end(): Promise<void> } {
    const key = ++lastKey;
    const member: Member = { options, hear, isRegistered: false, isLocal: false };
    this.#members.set(key, member);
    this.#begin(key, member);
    let ended: Promise<void> | undefined;
    return {
      registered: () => {
        member.isRegistered = true;
        this.#send(member, { kind: "registered", key });
      },
      end: () => (ended ??= this.#end(key, member)),
    };
  }

  async #end(key: number, member: Member): Promise<void> {
    await new Promise<void>((resolve) => {
      const deadline = setTimeout(resolve, endMs);
      member.onEnded = () => {
        clearTimeout(deadline);
        resolve();
      };
      // Between two threads, there is nothing to end.
      if (!this.#send(member, { kind: "end", key })) member.onEnded();
    });
    this.#members.delete(key);
  }

  #begin(key: number, member: Member): void {
    const { options, isRegistered } = member;
    const order = { kind: "begin", key, options, isRegistered } as const;
    member.isLocal ||= this.#hasNoThread;
    try {
      this.#send(member, order);
    } catch (error) {
      this.#tellOfMainLoop(error);
      member.isLocal = true;
      this.#send(member, order);
    }
  }

  /** False: there is no thread just now. The next is told all. */
  #send(member: Member, order: Order): boolean {
    if (member.isLocal) void this.#inMainLoop(order);
    else if (this.#thread === null) return false;
    else this.#thread.postMessage(order);
    return true;
  }

  #hear(notice: Notice): void {
    if (notice.kind === "ready") return;
    const member = this.#members.get(notice.key);
    if (notice.kind === "ended") member?.onEnded?.();
    else member?.hear(notice.report);
  }

  #startThread(): void {
    let thread: Thread;
    try {
      // The thread needs nothing of the process but the driver: no flags such as --inspect or a test's loader.
      thread = new Thread(new URL("./heartbeat-thread.js", import.meta.url), {
        workerData: threadMark,
        execArgv: [],
        name: "pawl-heartbeat",
      });
    } catch (error) {
      this.#useMainLoop(error);
      return;
    }
    thread.unref();
    this.#thread = thread;
    const startedMs = performance.now();
    let isReady = false;
    let reason: unknown;
    thread.on("message", (notice: Notice) => {
      isReady ||= notice.kind === "ready";
      this.#hear(notice);
    });
    thread.on("error", (error) => (reason = error));
    thread.on("exit", (code) => {
      if (this.#thread !== thread) return;
      this.#thread = null;
      for (const { onEnded } of this.#members.values()) onEnded?.();
      const why = reason ?? new Error(`the thread ended with code ${code}`);
      if (!isReady) {
        this.#useMainLoop(why);
        return;
      }
      this.#logger.error({ err: why }, "pawl: the heartbeat thread has died, another takes over");
      if (performance.now() - startedMs > steadyMs) this.#retryDelay.reset();
      this.#restart = setTimeout(() => this.#startThread(), this.#retryDelay.next());
    });
    this.#beginAll();
  }

  #useMainLoop(reason: unknown): void {
    this.#tellOfMainLoop(reason);
    this.#hasNoThread = true;
    this.#beginAll();
  }

  /** All who are here, but for those that the main loop has already, and those that are about to go. */
  #beginAll(): void {
    for (const [key, member] of this.#members) {
      if (!member.isLocal && member.onEnded === undefined) this.#begin(key, member);
    }
  }

  #tellOfMainLoop(reason: unknown): void {
    if (toldOfMainLoop) return;
    toldOfMainLoop = true;
    this.#logger.warn(
      { err: reason },
      "pawl: the heartbeat thread cannot start, beating in the main loop: a step that blocks it may cost the lease",
    );
  }
}
