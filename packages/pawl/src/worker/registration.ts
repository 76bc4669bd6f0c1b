/**
 * Registers a worker under new worker ids, each with its lease. Heartbeats begin before the row
 * exists. After a lost lease it waits before the next registration, longer after each loss in a
 * row, so that workers which share an overloaded machine do not keep it overloaded. Owned by the
 * worker.
 */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Unavailable } from "../values/errors.js";
import type { AnyDefinition } from "../define/definition.js";
import { machineGraph } from "../define/machine-graph.js";
import type { HeartbeatAddress } from "../heartbeat/connection.js";
import type { WorkerStore } from "../store/store.js";
import { type ConfirmedHeartbeat, Heartbeat, type Lease } from "../heartbeat/lease.js";
import { monotonicMs } from "../values/monotonic-clock.js";
import { RetryDelay } from "../timing/retry-delay.js";
import type { ServeSettings } from "./options.js";

/** A lease that held for so many times its length was not lost by constant overload. */
const steadyLeases = 10;
/**
 * The heartbeat thread may take this long to start. A shorter lease counts only after a confirmed
 * heartbeat.
 */
const beginMs = 5_000;

/** A longer graph is not registered. */
const maxDeclared = 50_000;

/** What the code of a definition declares, as JSON. */
function declaredBy(definition: AnyDefinition): string | null {
  if (definition.kind !== "machine") return null;
  const declared = JSON.stringify(machineGraph(definition));
  // PostgreSQL stores no text with a zero character.
  return declared.length > maxDeclared || declared.includes(String.raw`\u0000`) ? null : declared;
}

export interface RegistrationHost {
  readonly store: Pick<WorkerStore, "register">;
  /** Where to send heartbeats; null: this worker needs none. */
  readonly heartbeat: HeartbeatAddress | null;
  readonly settings: ServeSettings;
  /** The lease is lost. */
  onLost(reason: string): void;
  /** A heartbeat of this worker id was confirmed. `isBack`: the one before it had failed. */
  onHeartbeat(workerId: string, confirmed: ConfirmedHeartbeat, isBack: boolean): void;
}

export class Registration {
  readonly #host: RegistrationHost;
  readonly #heartbeat: Heartbeat | null;
  readonly #losses = new RetryDelay();
  #lease: Lease | undefined;
  #leasedAtMs = 0;
  /** Ends the present wait. */
  #endWait: () => void = () => {};
  #isClosing = false;

  constructor(host: RegistrationHost) {
    this.#host = host;
    const { leaseMs, heartbeatMs, logger } = host.settings;
    const { heartbeat: address } = host;
    this.#heartbeat =
      address === null ? null : new Heartbeat({ address, intervalMs: heartbeatMs, leaseMs, logger });
  }

  /**
   * Registers under a new worker id and answers it. After a lost lease, and for a short lease
   * always, a heartbeat must have confirmed it: work that begins under a lease that cannot be held
   * is lost.
   */
  async register(): Promise<string> {
    const { store, settings } = this.#host;
    const { definitions, queues, leaseMs } = settings;
    const needsProof = this.#leasedAtMs > 0 || leaseMs < beginMs;
    const workerId = `${hostname().slice(0, 60)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    const info = JSON.stringify({ host: hostname(), pid: process.pid, node: process.version });
    // Heartbeats begin first: a busy main loop may notice late that the row is committed.
    const lease = this.#heartbeat?.begin(workerId, {
      onLost: (reason) => this.#lose(lease, reason),
      onConfirmed: (confirmed, isBack) => this.#host.onHeartbeat(workerId, confirmed, isBack),
    });
    const sentAtMs = monotonicMs();
    await store.register({
      workerId,
      leaseMs,
      queues: [...queues.keys()],
      info,
      definitions: definitions.map((definition) => ({ ...definition, declared: declaredBy(definition) })),
    });
    lease?.registered(sentAtMs);
    this.#endWait = () => void lease?.end();
    if (this.#isClosing) this.#endWait();
    if (needsProof && (await lease?.proven()) === false) {
      throw new Unavailable("no heartbeat was confirmed within the lease of the new registration");
    }
    this.#lease = lease;
    this.#leasedAtMs = monotonicMs();
    return workerId;
  }

  /** Waits after a lost lease: a little, not in step with other workers, and longer each time. */
  async waitAfterLoss(): Promise<void> {
    if (monotonicMs() - this.#leasedAtMs > this.#host.settings.leaseMs * steadyLeases) this.#losses.reset();
    if (this.#isClosing) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#losses.next());
      this.#endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /**
   * The worker stops: a registration without a lease is given up. A lease that it has lasts until
   * `close`.
   */
  stopTrying(): void {
    this.#isClosing = true;
    if (this.#lease === undefined) this.#endWait();
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
