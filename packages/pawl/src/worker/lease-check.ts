/**
 * Compares the claims that the database knows with those that the worker executes. It aborts
 * executions whose run was ended from outside or whose claim is gone, and releases claims that nobody
 * executes. A heartbeat brings the latest claims. A list of all claims may take long and is asked
 * for apart from the heartbeats: when they are confirmed again after one has failed, when the
 * server writes another timeline, and every few minutes. Owned by the worker.
 */

import type { Logger } from "../values/logger.js";
import type { WorkerStore } from "../store/store.js";
import type { Execution } from "../run/execution.js";
import type { Executions } from "./executions.js";
import type { Claimer } from "./claimer.js";
import type { ConfirmedHeartbeat } from "../heartbeat/lease.js";
import { monotonicMs } from "../values/monotonic-clock.js";
import type { HeldClaim, Releaser } from "./release.js";

/** How often all claims are compared, if nothing else asks for it. */
const everyMs = 120_000;
/** After a comparison that took long, the next waits this many times as long. */
const restFactor = 10;

export interface LeaseCheckHost {
  readonly store: Pick<WorkerStore, "held" | "heldClaims">;
  readonly logger: Logger;
  readonly releaser: Releaser;
  readonly executions: Executions;
  readonly claimers: Iterable<Claimer>;
  /** The ids of claims in flight. */
  readonly claiming: ReadonlySet<string>;
  /** The batcher of outcomes. */
  readonly commits: { has(runId: string): boolean; drop(runId: string): void };
  /** The id under which the worker claims; null while it has no lease. */
  workerId(): string | null;
  /** A run was cancelled, or has failed by its deadline. */
  ended(runId: string): void;
}

type Claims = Readonly<Record<string, string>>;

export class LeaseCheck {
  readonly #host: LeaseCheckHost;
  #timeline: string | null = null;
  /** When all claims are compared next. */
  #dueAtMs = monotonicMs() + everyMs;
  #isComparing = false;

  constructor(host: LeaseCheckHost) {
    this.#host = host;
  }

  /** A heartbeat of this worker id was confirmed. `isBack`: one before it had failed. */
  onHeartbeat(workerId: string, confirmed: ConfirmedHeartbeat, isBack: boolean): void {
    const { cancelled, held, sentAtMs, timeline } = confirmed;
    const { releaser } = this.#host;
    for (const runId of Object.keys(cancelled)) this.#host.ended(runId);
    // Cancelled runs whose execution has ended, but whose claim could not be released.
    releaser.release(this.#notExecuted(cancelled));
    if (held !== null) this.#compareClaims(held.claims, BigInt(held.since), sentAtMs);
    const isNewTimeline = this.#timeline !== null && timeline !== null && timeline !== this.#timeline;
    this.#timeline = timeline ?? this.#timeline;
    if (isBack || isNewTimeline) this.#dueAtMs = 0;
    if (this.#dueAtMs <= monotonicMs()) void this.#compareAll(workerId);
  }

  /** If it fails, the next heartbeat tries again. */
  async #compareAll(workerId: string): Promise<void> {
    if (this.#isComparing) return;
    this.#isComparing = true;
    const askedAtMs = monotonicMs();
    this.#dueAtMs = askedAtMs + everyMs * (0.75 + Math.random() / 2);
    try {
      const claims = await this.#host.store.heldClaims(workerId);
      // The claims of a lost lease expire like those of a dead worker.
      if (this.#host.workerId() === workerId) this.#compareClaims(claims, 0n, askedAtMs);
      const nowMs = monotonicMs();
      if (this.#dueAtMs > 0)
        this.#dueAtMs = Math.max(this.#dueAtMs, nowMs + (nowMs - askedAtMs) * restFactor);
    } catch (error) {
      this.#dueAtMs = 0;
      this.#host.logger.warn({ err: error }, "pawl: the claims could not be compared, trying again");
    } finally {
      this.#isComparing = false;
    }
  }

  /**
   * `claims`: all that this worker held at some time after `askedAtMs`, from the claim id `since`
   * on.
   */
  #compareClaims(claims: Claims, since: bigint, askedAtMs: number): void {
    const { releaser, executions } = this.#host;
    const before = [...executions].filter(({ begunAtMs }) => begunAtMs < askedAtMs);
    const [recent, older] = [
      before.filter(({ claimId }) => BigInt(claimId) >= since),
      before.filter(({ claimId }) => BigInt(claimId) < since),
    ];
    this.#abortLost(recent.filter(({ runId, claimId }) => claims[runId] !== claimId));
    void this.#checkOlder(older);
    // Claims of a call whose answer was lost, or whose outcome the database has lost.
    releaser.release(this.#notExecuted(claims));
  }

  /** The heartbeat says nothing about claims that are older than those it was asked for. */
  async #checkOlder(older: readonly Execution[]): Promise<void> {
    if (older.length === 0) return;
    try {
      const held = new Set(await this.#host.store.held(older));
      this.#abortLost(older.filter(({ runId }) => !held.has(runId)));
    } catch (error) {
      this.#host.logger.warn({ err: error }, "pawl: the claims could not be checked, trying again");
    }
  }

  #abortLost(lost: readonly Execution[]): void {
    const { executions, commits } = this.#host;
    for (const execution of lost) {
      const { runId } = execution;
      // Its outcome is being written: perhaps that has ended the claim. The guard will say.
      if (executions.get(runId) !== execution || commits.has(runId)) continue;
      execution.control.abort(new Error("the claim on this run was lost"));
      commits.drop(runId);
    }
  }

  /** The claims that are neither executed, nor waiting for a slot, nor just being made. */
  #notExecuted(claims: Claims): HeldClaim[] {
    const { executions, claimers, claiming } = this.#host;
    const unstarted = new Set([...claimers].flatMap(({ slots }) => slots.unstartedIds()));
    return Object.entries(claims)
      .filter(([runId, claimId]) => executions.get(runId)?.claimId !== claimId)
      .filter(([runId, claimId]) => !unstarted.has(runId) && !claiming.has(claimId))
      .map(([runId, claimId]) => ({ runId, claimId }));
  }
}
