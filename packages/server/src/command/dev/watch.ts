/**
 * Runs a worker process for the definitions of a file, and starts a new one when the file, or a
 * file that it imports, has changed. The new process loads the file first. If that fails, the error
 * is printed in one line and the old process continues; else the new one serves and the old one
 * stops gracefully. A crashed process is restarted. Used by `pawl dev`.
 */

import { type ChildProcess, fork } from "node:child_process";
import { statSync } from "node:fs";

export type ToWorker = "serve" | "stop";

export type FromWorker =
  | { readonly kind: "loaded"; readonly serves: readonly string[]; readonly files: readonly string[] }
  | { readonly kind: "broken"; readonly text: string; readonly files: readonly string[] }
  | { readonly kind: "ready" };

export interface Watch {
  /** Resolves when the first worker serves, or cannot load its file. */
  readonly begun: Promise<void>;
  /** Lets running steps finish. */
  stop(): Promise<void>;
  /** Stops at once. */
  kill(): void;
}

export interface WatchOptions {
  readonly file: string;
  readonly url: string;
  readonly schema: string;
  readonly onServing: (serves: readonly string[], isAgain: boolean) => void;
  readonly onBroken: (text: string, goesOn: boolean) => void;
  readonly onCrash: (how: string) => void;
}

const minPollMs = 200;
/** Checking a file takes about 10 µs, so this uses a hundredth of the time. */
const pollMsPerFile = 1;
/** A changed file is loaded once it has not changed for this long. */
const settleMs = 50;
const restartMs = 1_000;

export function watchFile(options: WatchOptions): Watch {
  return new DevWatch(options);
}

class DevWatch implements Watch {
  readonly begun: Promise<void>;
  readonly #options: WatchOptions;
  readonly #children = new Set<ChildProcess>();
  /** Processes that have loaded the file: they may serve, so they are stopped gracefully. */
  readonly #loaded = new WeakSet<ChildProcess>();
  #candidate: ChildProcess | undefined;
  #serving: ChildProcess | undefined;
  /** The state of each file (time, size, inode) when the last worker was started. */
  #files = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;
  #begin: () => void = () => {};

  constructor(options: WatchOptions) {
    this.#options = options;
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
    this.#addFiles([options.file]);
    this.#launch();
    this.#pollLater();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    await Promise.all([...this.#children].map((child) => this.#end(child)));
  }

  kill(): void {
    this.#isStopping = true;
    for (const child of this.#children) child.kill("SIGKILL");
  }

  #launch(): void {
    const { file, url, schema } = this.#options;
    const previous = this.#candidate;
    if (previous !== undefined) void this.#end(previous);
    const program = new URL("./worker.js", import.meta.url);
    const child = fork(program, [file, schema], {
      env: { ...process.env, PAWL_URL: url, PAWL_SCHEMA: schema },
    });
    this.#children.add(child);
    this.#candidate = child;
    let serves: readonly string[] = [];
    child.on("message", (message: FromWorker) => {
      if (child !== this.#candidate && child !== this.#serving) return;
      if (message.kind !== "ready") this.#addFiles(message.files);
      switch (message.kind) {
        case "loaded":
          ({ serves } = message);
          this.#loaded.add(child);
          send(child, "serve");
          return;
        case "ready":
          return this.#takeOver(child, serves);
        case "broken":
          return this.#giveUp(child, message.text);
      }
    });
    child.once("exit", (code, signal) => this.#ended(child, signal ?? `code ${code ?? 0}`));
    child.once("error", (error) => this.#ended(child, error.message));
  }

  #takeOver(child: ChildProcess, serves: readonly string[]): void {
    const old = this.#serving;
    this.#serving = child;
    this.#candidate = undefined;
    if (old !== undefined) void this.#end(old);
    this.#options.onServing(serves, old !== undefined);
    this.#begin();
  }

  #giveUp(child: ChildProcess, text: string): void {
    this.#candidate = undefined;
    void this.#end(child);
    this.#options.onBroken(text, this.#serving !== undefined);
    this.#begin();
  }

  #ended(child: ChildProcess, how: string): void {
    if (!this.#children.delete(child) || this.#isStopping) return;
    if (child !== this.#serving && child !== this.#candidate) return;
    if (child === this.#serving) this.#serving = undefined;
    else this.#candidate = undefined;
    this.#options.onCrash(how);
    this.#begin();
    setTimeout(() => {
      if (!this.#isStopping && this.#candidate === undefined && this.#serving === undefined) this.#launch();
    }, restartMs);
  }

  async #end(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    if (!this.#loaded.has(child) || !send(child, "stop")) child.kill("SIGKILL");
    await ended;
  }

  #pollLater(wasChanged = false): void {
    const ms = wasChanged ? settleMs : Math.max(minPollMs, this.#files.size * pollMsPerFile);
    this.#timer = setTimeout(() => {
      const isChanged = this.#hasChanged();
      if (wasChanged && !isChanged) this.#launch();
      this.#pollLater(isChanged);
    }, ms);
  }

  #hasChanged(): boolean {
    let changed = false;
    for (const [file, before] of this.#files) {
      const now = stateOf(file);
      if (now === before) continue;
      this.#files.set(file, now);
      changed = true;
    }
    return changed;
  }

  #addFiles(files: readonly string[]): void {
    for (const file of files) if (!this.#files.has(file)) this.#files.set(file, stateOf(file));
  }
}

/** Returns whether the worker can receive it. */
function send(child: ChildProcess, message: ToWorker): boolean {
  return child.connected && child.send(message, () => {});
}

function stateOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? "missing" : `${found.mtimeMs} ${found.size} ${found.ino}`;
}
