/**
 * Owns the one heartbeat thread of the process, for all its workers. The thread starts with the
 * first worker and ends with the last. If it dies, another one takes over all its worker ids. Its
 * program is a text, so it starts in every bundle. Where no thread can start (a runtime without
 * threads, options that cannot be posted to it), the main loop sends the heartbeats and says so once.
 * Used by `lease.ts`.
 *
 * One thread, because a thread per worker fed the overload that had cost the lease: 25 workers on 2
 * starved cores lost 243 leases of 2 s in 40 s, and lose none with one.
 */

import { Worker as Thread } from "node:worker_threads";
import { threadSource } from "../generated/heartbeat-thread.js";
import type { Logger } from "../values/logger.js";
import { RetryDelay } from "../timing/retry-delay.js";
import { passwordOf, toThread } from "./connection.js";
import {
  beatAll,
  type Command,
  type HeartbeatOptions,
  type HeartbeatReport,
  type Message,
} from "./thread.js";

/** A heartbeat may hang in a database that does not answer: a worker that stops waits no longer. */
const endMs = 1_000;
/** A thread that lived this long is not one that dies at once. */
const steadyMs = 60_000;

/** One worker id. */
interface Member {
  readonly options: HeartbeatOptions;
  readonly onReport: (report: HeartbeatReport) => void;
  isRegistered: boolean;
  /** Its heartbeats are sent by the main loop, whatever the others do. */
  isLocal: boolean;
  onEnded?: () => void;
}

let shared: ThreadHost | undefined;
let lastKey = 0;
let warnedOfMainLoop = false;

export class ThreadHost {
  readonly #logger: Logger;
  readonly #members = new Map<number, Member>();
  readonly #retryDelay = new RetryDelay();
  readonly #inMainLoop = beatAll((message) => this.#onMessage(message));
  #users = 0;
  #thread: Thread | null = null;
  /** No thread can start: the main loop sends all heartbeats. */
  #hasNoThread = false;
  #restart: NodeJS.Timeout | undefined;

  private constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The host of this process, for one more worker. */
  static join(logger: Logger): ThreadHost {
    if (shared === undefined) {
      shared = new ThreadHost(logger);
      shared.#startThread();
    }
    shared.#users++;
    return shared;
  }

  /** A worker has stopped; the last one ends the thread. */
  async leave(): Promise<void> {
    if (--this.#users > 0) return;
    if (shared === this) shared = undefined;
    clearTimeout(this.#restart);
    const thread = this.#thread;
    this.#thread = null;
    if (thread === null) return;
    const ended = new Promise((resolve) => thread.once("exit", resolve));
    thread.postMessage({ kind: "stop" } satisfies Command);
    const deadline = setTimeout(() => void thread.terminate(), endMs);
    await ended;
    clearTimeout(deadline);
  }

  /** Begins to send heartbeats for a worker id, whose row need not exist yet. */
  begin(
    options: HeartbeatOptions,
    onReport: Member["onReport"],
  ): { registered(): void; end(): Promise<void> } {
    const key = ++lastKey;
    const member: Member = { options, onReport, isRegistered: false, isLocal: false };
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
      // Without a thread there is nothing to end.
      if (!this.#send(member, { kind: "end", key })) member.onEnded();
    });
    this.#members.delete(key);
  }

  #begin(key: number, member: Member): void {
    const { options, isRegistered } = member;
    const address = toThread(options.address);
    const command = { kind: "begin", key, options, isRegistered } as const;
    // A user's own pool stays in the main loop, as the guide of connections says.
    member.isLocal ||= this.#hasNoThread || address === null;
    try {
      this.#send(
        member,
        member.isLocal ? command : { ...command, options: { ...options, address: address! } },
      );
    } catch (error) {
      this.#warnOfMainLoop(error);
      member.isLocal = true;
      this.#send(member, command);
    }
  }

  /** A new connection of the thread needs a password that may expire. */
  async #answer(thread: Thread, asks: number, request: number): Promise<void> {
    let password: string | null = null;
    try {
      password = await passwordOf(asks);
    } catch (error) {
      this.#logger.error({ err: error }, "pawl: the function that returns the database password has failed");
    }
    thread.postMessage({ kind: "password", request, password } satisfies Command);
  }

  /** False: there is no thread at the moment. The next one gets all commands again. */
  #send(member: Member, command: Command): boolean {
    if (member.isLocal) void this.#inMainLoop(command);
    else if (this.#thread === null) return false;
    else this.#thread.postMessage(command);
    return true;
  }

  #onMessage(message: Message): void {
    if (message.kind === "ready" || message.kind === "stopped" || message.kind === "password") return;
    const member = this.#members.get(message.key);
    if (message.kind === "ended") member?.onEnded?.();
    else member?.onReport(message.report);
  }

  #startThread(): void {
    let thread: Thread;
    try {
      // The thread runs a text that needs no other file: no flags such as --inspect or a test's loader.
      thread = new Thread(threadSource, { eval: true, execArgv: [], name: "pawl-heartbeat" });
    } catch (error) {
      this.#useMainLoop(error);
      return;
    }
    thread.unref();
    this.#thread = thread;
    const startedMs = performance.now();
    let isReady = false;
    let reason: unknown;
    thread.on("message", (message: Message) => {
      isReady ||= message.kind === "ready";
      if (message.kind === "stopped") void thread.terminate();
      if (message.kind === "password") void this.#answer(thread, message.asks, message.request);
      this.#onMessage(message);
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
    this.#warnOfMainLoop(reason);
    this.#hasNoThread = true;
    this.#beginAll();
  }

  /** All worker ids, except those that the main loop has, and those that are about to end. */
  #beginAll(): void {
    for (const [key, member] of this.#members) {
      if (!member.isLocal && member.onEnded === undefined) this.#begin(key, member);
    }
  }

  #warnOfMainLoop(reason: unknown): void {
    if (warnedOfMainLoop) return;
    warnedOfMainLoop = true;
    this.#logger.warn(
      { err: reason },
      "pawl: the heartbeat thread cannot start, beating in the main loop: a step that blocks it may cost the lease",
    );
  }
}
