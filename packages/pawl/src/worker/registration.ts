/**
 * Takes worker ids for a worker, each with its lease: registers under a new one, has it beaten for from the first, and after a
 * lease was lost waits before the next, ever longer if that happens again and again, so that workers which share an overloaded
 * machine do not keep it so. Owned by the worker.
 */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Unavailable } from "../values/errors.js";
import type { BeatAddress } from "./open-beats.js";
import type { WorkerStore } from "../store/store.js";
import { type ConfirmedBeat, Heartbeat, type Lease } from "./heartbeat.js";
import { monotonicMs } from "../values/monotonic.js";
import { RetryDelay } from "../timing/retry-delay.js";
import type { ServeSettings } from "./options.js";

/** A lease that held for so many times its length was not lost because too much is asked of the machine all the time. */
const steadyLeases = 10;
/** So long the thread may take to begin on a busy machine: a shorter lease is relied on only once it has shown that it can be held. */
const beginMs = 5_000;

export interface RegistrationHost {
  readonly store: Pick<WorkerStore, "register">;
  /** Where to beat; null: nobody judges this worker by its beats, and it makes none. */
  readonly beats: BeatAddress | null;
  readonly settings: ServeSettings;
  /** The lease cannot be relied on any more. */
  onLost(reason: string): void;
  /** A beat of this worker id was confirmed. `isBack`: the one before it had failed. */
  onBeat(workerId: string, confirmed: ConfirmedBeat, isBack: boolean): void;
}

export class Registration {
  readonly #host: RegistrationHost;
  readonly #heartbeat: Heartbeat | null;
  readonly #losses = new RetryDelay();
  #lease: Lease | undefined;
  #leasedAtMs = 0;
  /** Ends what is waited for. */
  #hurry: () => void = () => {};
  #isClosing = false;

  constructor(host: RegistrationHost) {
    this.#host = host;
    const { leaseMs, heartbeatMs, logger } = host.settings;
    const { beats } = host;
    this.#heartbeat =
      beats === null ? null : new Heartbeat({ address: beats, intervalMs: heartbeatMs, leaseMs, logger });
  }

  /**
   * A new worker id, whose lease runs. Once one was lost, and of short leases always, only an id that a beat has confirmed: work
   * begun under a lease that cannot be held is work for nothing.
   */
  async take(): Promise<string> {
    const { store, settings } = this.#host;
    const { definitions, queues, leaseMs } = settings;
    const needsProof = this.#leasedAtMs > 0 || leaseMs < beginMs;
    const workerId = `${hostname().slice(0, 60)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    const info = JSON.stringify({ host: hostname(), pid: process.pid, node: process.version });
    // It is beaten for from the first: this loop may be slow to hear that the row is there.
    const lease = this.#heartbeat?.take(workerId, {
      onLost: (reason) => this.#lose(lease, reason),
      onBeat: (confirmed, isBack) => this.#host.onBeat(workerId, confirmed, isBack),
    });
    const sentAtMs = monotonicMs();
    await store.register({ workerId, leaseMs, queues: [...queues.keys()], info, definitions });
    lease?.registered(sentAtMs);
    this.#hurry = () => void lease?.end();
    if (this.#isClosing) this.#hurry();
    if (needsProof && (await lease?.proven()) === false) {
      throw new Unavailable("no heartbeat was confirmed within the lease of the new registration");
    }
    this.#lease = lease;
    this.#leasedAtMs = monotonicMs();
    return workerId;
  }

  /** After a lease was lost: soon, but not in step with other workers, and later each time. */
  async rest(): Promise<void> {
    if (monotonicMs() - this.#leasedAtMs > this.#host.settings.leaseMs * steadyLeases) this.#losses.reset();
    if (this.#isClosing) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#losses.next());
      this.#hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The worker stops: an id that has no lease yet is not waited for. One that has is beaten for until `close`. */
  stopTrying(): void {
    this.#isClosing = true;
    if (this.#lease === undefined) this.#hurry();
  }

  async close(): Promise<void> {
    await this.#heartbeat?.close();
  }

  #lose(lease: Lease | undefined, reason: string): void {
    if (this.#lease !== lease) return;
    this.#lease = undefined;
    void lease?.end();
    this.#host.onLost(reason);
  }
}
