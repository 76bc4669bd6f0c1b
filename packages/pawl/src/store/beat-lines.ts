/**
 * The lines on which the workers of one address beat, shared by all of them in a process. A beat takes a line that is
 * free, or waits for one; another is opened only if none comes back, so that one connection serves many workers, and a beat that
 * hangs (a locked row, a silent socket) still keeps nobody else. Few are opened at once: connecting is what an overloaded
 * machine is slowest at. Used in the heartbeat's thread.
 */

import type { Beats } from "./beats.js";

/** If no line comes back for so long while somebody waits for one, another is opened. */
const graceMs = 50;
const maxOpening = 2;
/** Lines that are kept open with nothing to do. */
const maxIdle = 4;
/** Opening is given this long at least: to give up and begin again would only take longer. */
const openMs = 1_000;

interface Waiter {
  readonly patienceMs: number;
  readonly sinceMs: number;
  resolve(line: Beats): void;
  reject(error: unknown): void;
}

export class BeatLines {
  readonly #open: (patienceMs: number) => Promise<Beats>;
  readonly #idle: Beats[] = [];
  #waiting: Waiter[] = [];
  /** Lines that are open, idle or not. */
  #count = 0;
  #opening = 0;
  /** When a line was given back last. */
  #flowMs = 0;
  #isWatching = false;
  #isEnded = false;

  constructor(open: (patienceMs: number) => Promise<Beats>) {
    this.#open = open;
  }

  /** Does something with a line; one that fails is not used again. */
  async use<T>(patienceMs: number, work: (line: Beats) => Promise<T>): Promise<T> {
    const line = this.#idle.pop() ?? (await this.#wait(patienceMs));
    let done: T;
    try {
      done = await work(line);
    } catch (error) {
      // Those that nobody uses have met the same, most likely, as when the database has restarted: nobody is to find out on each of them.
      for (const one of [line, ...this.#idle.splice(0)]) this.#close(one);
      this.#openIfNeeded();
      throw error;
    }
    this.#giveBack(line);
    return done;
  }

  /** Closes the lines; those in use when they are given back. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await Promise.all(this.#idle.splice(0).map((line) => line.end().catch(() => {})));
  }

  #wait(patienceMs: number): Promise<Beats> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ patienceMs, sinceMs: performance.now(), resolve, reject });
      this.#openIfNeeded();
    });
  }

  #giveBack(line: Beats): void {
    this.#flowMs = performance.now();
    const next = this.#isEnded ? undefined : this.#waiting.shift();
    if (next !== undefined) next.resolve(line);
    else if (this.#isEnded || this.#idle.length >= maxIdle) this.#close(line);
    else this.#idle.push(line);
  }

  #close(line: Beats): void {
    this.#count--;
    line.end().catch(() => {});
  }

  /** Opens a line if somebody waits and there is none, or those that there are do not come back; looks again as long as somebody waits. */
  #openIfNeeded(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    if (this.#count + this.#opening === 0 || this.#isLate(first)) this.#openAnother(first);
    if (this.#isWatching) return;
    this.#isWatching = true;
    setTimeout(() => {
      this.#isWatching = false;
      this.#openIfNeeded();
    }, graceMs);
  }

  #isLate({ sinceMs, patienceMs }: Waiter): boolean {
    const nowMs = performance.now();
    return nowMs - Math.max(sinceMs, this.#flowMs) >= graceMs || nowMs - sinceMs >= patienceMs / 4;
  }

  #openAnother({ patienceMs }: Waiter): void {
    if (this.#opening >= maxOpening) return;
    this.#opening++;
    const asked = new Set(this.#waiting);
    this.#open(Math.max(patienceMs, openMs))
      .then(
        (line) => {
          this.#count++;
          this.#giveBack(line);
        },
        (error: unknown) => {
          // What kept this one from opening keeps the others too: they try again in their own time.
          this.#waiting = this.#waiting.filter((waiter) => !asked.has(waiter));
          for (const waiter of asked) waiter.reject(error);
        },
      )
      .finally(() => {
        this.#opening--;
        this.#openIfNeeded();
      });
  }
}
