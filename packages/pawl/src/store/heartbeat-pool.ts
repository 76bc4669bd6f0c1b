/**
 * The connections on which the workers of one address send heartbeats, shared by all workers of a
 * process. A heartbeat takes an idle connection or waits for one. The pool opens another only if
 * none comes back. So one connection serves many workers, and a heartbeat that hangs (a locked row,
 * a silent socket) delays no other worker. It opens few at once, because connecting is the slowest
 * thing on an overloaded machine. The heartbeat thread uses it.
 */

import type { HeartbeatConnection } from "./heartbeats.js";

/** Open another connection if none comes back for this long while a heartbeat waits. */
const graceMs = 50;
const maxOpening = 2;
/** How many idle connections to keep open. */
const maxIdle = 4;
/** Allow at least this long for opening: to give up and begin again would take longer. */
const openMs = 1_000;

interface Waiter {
  readonly timeoutMs: number;
  readonly sinceMs: number;
  resolve(connection: HeartbeatConnection): void;
  reject(error: unknown): void;
}

export class HeartbeatPool {
  readonly #open: (timeoutMs: number) => Promise<HeartbeatConnection>;
  readonly #idle: HeartbeatConnection[] = [];
  #waiting: Waiter[] = [];
  /** Open connections, idle or not. */
  #count = 0;
  #opening = 0;
  /** When a connection was last returned. */
  #lastPutMs = 0;
  #isWatching = false;
  #isEnded = false;

  constructor(open: (timeoutMs: number) => Promise<HeartbeatConnection>) {
    this.#open = open;
  }

  /** Runs `work` on a connection. After an error the pool closes that connection. */
  async use<T>(timeoutMs: number, work: (connection: HeartbeatConnection) => Promise<T>): Promise<T> {
    const connection = this.#idle.pop() ?? (await this.#wait(timeoutMs));
    let done: T;
    try {
      done = await work(connection);
    } catch (error) {
      // Most likely the idle ones are broken too, as after a restart of the database.
      for (const one of [connection, ...this.#idle.splice(0)]) this.#close(one);
      this.#openIfNeeded();
      throw error;
    }
    this.#put(connection);
    return done;
  }

  /** Closes the connections; those in use when they are returned. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await Promise.all(this.#idle.splice(0).map((connection) => connection.end().catch(() => {})));
  }

  #wait(timeoutMs: number): Promise<HeartbeatConnection> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ timeoutMs, sinceMs: performance.now(), resolve, reject });
      this.#openIfNeeded();
    });
  }

  #put(connection: HeartbeatConnection): void {
    this.#lastPutMs = performance.now();
    const next = this.#isEnded ? undefined : this.#waiting.shift();
    if (next !== undefined) next.resolve(connection);
    else if (this.#isEnded || this.#idle.length >= maxIdle) this.#close(connection);
    else this.#idle.push(connection);
  }

  #close(connection: HeartbeatConnection): void {
    this.#count--;
    connection.end().catch(() => {});
  }

  /**
   * Opens a connection if a heartbeat waits and there is none, or none comes back. Checks again as
   * long as one waits.
   */
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

  #isLate({ sinceMs, timeoutMs }: Waiter): boolean {
    const nowMs = performance.now();
    return nowMs - Math.max(sinceMs, this.#lastPutMs) >= graceMs || nowMs - sinceMs >= timeoutMs / 4;
  }

  #openAnother({ timeoutMs }: Waiter): void {
    if (this.#opening >= maxOpening) return;
    this.#opening++;
    const asked = new Set(this.#waiting);
    this.#open(Math.max(timeoutMs, openMs))
      .then(
        (connection) => {
          this.#count++;
          this.#put(connection);
        },
        (error: unknown) => {
          // The next connection would fail too: reject all that wait. Their workers try again.
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
