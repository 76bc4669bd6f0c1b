/**
 * Holds the lease of one worker, under one worker id after the other. The heartbeat thread of the
 * process sends the heartbeats; this file passes on their reports. It declares the lease lost when
 * no heartbeat was confirmed for 0.8 of it, or when one arrived too late. It reads the time of the
 * last confirmed heartbeat from shared memory, so a blocked main thread loses nothing while the
 * thread works. The registration counts as the first heartbeat. Owned by the registration of a
 * worker.
 */

import type { Logger } from "../values/logger.js";
import { monotonicMs } from "../values/monotonic-clock.js";
import type { HeartbeatAddress } from "./connection.js";
import { type ConfirmedHeartbeat, type HeartbeatReport, lostAfter } from "./thread.js";
import { ThreadHost } from "./thread-host.js";

export type { ConfirmedHeartbeat };

export interface LeaseOptions {
  readonly address: HeartbeatAddress;
  readonly intervalMs: number;
  readonly leaseMs: number;
  readonly logger: Logger;
}

export interface LeaseEvents {
  /** The lease is lost. Called at most once. */
  onLost(reason: string): void;
  /** A heartbeat was confirmed. `isBack`: the one before it had failed. */
  onConfirmed(confirmed: ConfirmedHeartbeat, isBack: boolean): void;
}

export class Heartbeat {
  readonly #options: LeaseOptions;
  readonly #host: ThreadHost;
  #lease: Lease | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#host = ThreadHost.join(options.logger);
  }

  /** Begins the lease of a worker id that is about to be registered, and ends the one before it. */
  begin(workerId: string, events: LeaseEvents): Lease {
    void this.#lease?.end();
    this.#lease = new Lease(this.#host, this.#options, workerId, events);
    return this.#lease;
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#lease?.end();
      await this.#host.leave();
    })();
    return this.#closed;
  }
}

/** The lease of one worker id. */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #events: LeaseEvents;
  readonly #confirmed = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
  readonly #beating: ReturnType<ThreadHost["begin"]>;
  readonly #proven: Promise<boolean>;
  #prove!: (isProven: boolean) => void;
  #registeredAtMs = 0;
  #watch: NodeJS.Timeout | undefined;
  #isOver = false;
  /** The last heartbeat failed. */
  #hasFailed = false;

  constructor(host: ThreadHost, options: LeaseOptions, workerId: string, events: LeaseEvents) {
    this.#options = options;
    this.#events = events;
    this.#proven = new Promise((resolve) => (this.#prove = resolve));
    const { address, intervalMs, leaseMs } = options;
    const confirmed = this.#confirmed;
    this.#beating = host.begin({ address, workerId, intervalMs, leaseMs, confirmed }, (report) =>
      this.#onReport(report),
    );
  }

  /** The worker's row is committed, by a call that was sent at this time: the lease has begun. */
  registered(sentAtMs: number): void {
    this.#registeredAtMs = sentAtMs;
    this.#beating.registered();
    this.#watch = setInterval(() => this.#check(), Math.max(10, this.#options.leaseMs / 40));
    this.#watch.unref();
  }

  /** Whether a heartbeat is confirmed before the lease is lost or ended. */
  proven(): Promise<boolean> {
    return this.#proven;
  }

  /** Stops its heartbeats. */
  end(): Promise<void> {
    this.#over();
    return this.#beating.end();
  }

  #over(): void {
    this.#isOver = true;
    clearInterval(this.#watch);
    this.#prove(false);
  }

  #check(): void {
    const confirmedAtMs = new Float64Array(this.#confirmed)[0]!;
    if (confirmedAtMs > 0) this.#prove(true);
    const silentMs = monotonicMs() - Math.max(confirmedAtMs, this.#registeredAtMs);
    if (silentMs > this.#options.leaseMs * lostAfter) {
      this.#lose(`no heartbeat was confirmed for ${Math.round(silentMs)} ms`);
    }
  }

  #lose(reason: string): void {
    if (this.#isOver) return;
    this.#over();
    this.#events.onLost(reason);
  }

  #onReport(report: HeartbeatReport): void {
    if (this.#isOver) return;
    if (report.kind === "failed") {
      this.#hasFailed = true;
      this.#options.logger.warn({ reason: report.message }, "pawl: heartbeat failed, trying again");
    } else if (report.kind === "alive") {
      const isBack = this.#hasFailed;
      this.#hasFailed = false;
      this.#prove(true);
      this.#events.onConfirmed(report.confirmed, isBack);
    } else {
      this.#lose("the lease had passed when the heartbeat came");
    }
  }
}
