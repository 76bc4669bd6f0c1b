/**
 * Holds the lease of one worker, under one worker id after the other: has the thread of the process beat for the id, passes
 * on what the beats report, and declares the lease lost when no beat has been confirmed for 0.8 of it, or a beat was told
 * that it came too late. Judged by the time a confirmed beat was sent, read from shared memory: a blocked main thread loses
 * nothing as long as the thread beats. The registration counts as the first beat. Owned by the worker.
 */

import type { Logger } from "../values/logger.js";
import type { BeatAddress } from "./open-beats.js";
import { HeartbeatHost } from "./heartbeat-host.js";
import { type BeatReport, type ConfirmedBeat, lostAfter } from "./heartbeat-thread.js";
import { monotonicMs } from "../values/monotonic-clock.js";

export type { ConfirmedBeat };

export interface HeartbeatOptions {
  readonly address: BeatAddress;
  readonly intervalMs: number;
  readonly leaseMs: number;
  readonly logger: Logger;
}

export interface LeaseEvents {
  /** The lease cannot be relied on any more. Called once, at most. */
  onLost(reason: string): void;
  /** A beat was confirmed. `isBack`: the one before it had failed. */
  onBeat(confirmed: ConfirmedBeat, isBack: boolean): void;
}

export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #host: HeartbeatHost;
  #lease: Lease | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#host = HeartbeatHost.join(options.logger);
  }

  /** Begins to beat for a worker id that is about to be registered. The one before it is let go. */
  take(workerId: string, events: LeaseEvents): Lease {
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
  readonly #options: HeartbeatOptions;
  readonly #events: LeaseEvents;
  readonly #confirmed = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
  readonly #beating: ReturnType<HeartbeatHost["begin"]>;
  readonly #proven: Promise<boolean>;
  #prove!: (isProven: boolean) => void;
  #registeredAtMs = 0;
  #watch: NodeJS.Timeout | undefined;
  #isOver = false;
  /** The last beat failed. */
  #hasFailed = false;

  constructor(host: HeartbeatHost, options: HeartbeatOptions, workerId: string, events: LeaseEvents) {
    this.#options = options;
    this.#events = events;
    this.#proven = new Promise((resolve) => (this.#prove = resolve));
    const { address, intervalMs, leaseMs } = options;
    const confirmed = this.#confirmed;
    this.#beating = host.begin({ address, workerId, intervalMs, leaseMs, confirmed }, (report) =>
      this.#hear(report),
    );
  }

  /** The worker's row is committed, by a call that was sent at this time: the lease runs. */
  registered(sentAtMs: number): void {
    this.#registeredAtMs = sentAtMs;
    this.#beating.registered();
    this.#watch = setInterval(() => this.#check(), Math.max(10, this.#options.leaseMs / 40));
    this.#watch.unref();
  }

  /** Whether a beat is confirmed before the lease is lost, or ended. */
  proven(): Promise<boolean> {
    return this.#proven;
  }

  /** Stops beating for it. */
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

  #hear(report: BeatReport): void {
    if (this.#isOver) return;
    if (report.kind === "failed") {
      this.#hasFailed = true;
      this.#options.logger.warn({ reason: report.message }, "pawl: heartbeat failed, trying again");
    } else if (report.kind === "alive") {
      const isBack = this.#hasFailed;
      this.#hasFailed = false;
      this.#prove(true);
      this.#events.onBeat(report.confirmed, isBack);
    } else {
      this.#lose("the lease had passed when the heartbeat came");
    }
  }
}
