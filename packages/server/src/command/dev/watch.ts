/**
 * Keeps a worker for the definitions of a file, and starts another one when the file, or what it imports, has changed. The new one loads the
 * file first: if that fails, the mistake is told in one line and the old worker goes on with the code from before; else the new one
 * serves and the old one ends gracefully. A worker that crashes is started again. Used by `pawl dev`.
 */

import { type ChildProcess, fork } from "node:child_process";
import { statSync } from "node:fs";

export type ToWorker = "serve" | "stop";

export type FromWorker =
  | { readonly kind: "loaded"; readonly serves: readonly string[]; readonly files: readonly string[] }
  | { readonly kind: "broken"; readonly text: string; readonly files: readonly string[] }
  | { readonly kind: "ready" };

export interface Watch {
  /** Resolves when the first worker serves, or its file is broken. */
  readonly begun: Promise<void>;
  /** Lets running steps end. */
  stop(): Promise<void>;
  /** At once. */
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

const leastLookMs = 200;
/** Looking at a file costs about 10 µs: this is a hundredth of the time. */
const lookMsPerFile = 1;
/** A file that is being written is left alone until it has not changed for this long. */
const settleMs = 50;
const restartMs = 1_000;

export function watchFile(options: WatchOptions): Watch {
  return new DevWatch(options);
}

class DevWatch implements Watch {
  readonly begun: Promise<void>;
  readonly #options: WatchOptions;
  readonly #children = new Set<ChildProcess>();
  /** Those that have loaded the file: they may serve, and are asked to stop. */
  readonly #loaded = new WeakSet<ChildProcess>();
  #candidate: ChildProcess | undefined;
  #serving: ChildProcess | undefined;
  /** What the files looked like when the last worker was started. */
  #looks = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;
  #begin: () => void = () => {};

  constructor(options: WatchOptions) {
    this.#options = options;
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
    this.#see([options.file]);
    this.#launch();
    this.#lookLater();
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
      if (message.kind !== "ready") this.#see(message.files);
      switch (message.kind) {
        case "loaded":
          ({ serves } = message);
          this.#loaded.add(child);
          say(child, "serve");
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
    if (!this.#loaded.has(child) || !say(child, "stop")) child.kill("SIGKILL");
    await ended;
  }

  #lookLater(wasChanged = false): void {
    const ms = wasChanged ? settleMs : Math.max(leastLookMs, this.#looks.size * lookMsPerFile);
    this.#timer = setTimeout(() => {
      const isChanged = this.#hasChanged();
      if (wasChanged && !isChanged) this.#launch();
      this.#lookLater(isChanged);
    }, ms);
  }

  #hasChanged(): boolean {
    let changed = false;
    for (const [file, before] of this.#looks) {
      const now = lookAt(file);
      if (now === before) continue;
      this.#looks.set(file, now);
      changed = true;
    }
    return changed;
  }

  #see(files: readonly string[]): void {
    for (const file of files) if (!this.#looks.has(file)) this.#looks.set(file, lookAt(file));
  }
}

/** Answers whether the worker can hear it. */
function say(child: ChildProcess, message: ToWorker): boolean {
  return child.connected && child.send(message, () => {});
}

function lookAt(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? "missing" : `${found.mtimeMs} ${found.size} ${found.ino}`;
}
