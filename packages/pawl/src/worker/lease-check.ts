/**
 * Compares what the database says with what the worker has in hand: executions whose run was
 * cancelled or whose claim is gone are aborted, and claims that nobody executes are released. A
 * beat tells of the latest claims. Everything that the worker holds is asked for apart from the
 * beats, because that may take long: when beats are confirmed again after one has failed, when the
 * server writes another timeline, and every few minutes. Owned by the worker.
 */

import type { Logger } from "../values/logger.js";
import type { WorkerStore } from "../store/store.js";
import type { Execution } from "../run/execution.js";
import type { Executions } from "./executions.js";
import type { Claimer } from "./claimer.js";
import type { ConfirmedBeat } from "./heartbeat.js";
import { monotonicMs } from "../values/monotonic.js";
import type { HeldClaim, Releaser } from "./release.js";

/**
 * How often everything is compared, if nothing else asks for it; after one that took long, more
 * rarely.
 */
const everyMs = 120_000;
const restFactor = 10;

export interface HoldingsHost {
  readonly store: Pick<WorkerStore, "held" | "holdings">;
  readonly logger: Logger;
  readonly releaser: Releaser;
  readonly executions: Executions;
  readonly claimers: ReadonlyMap<string, Claimer>;
  /** The ids of claims in flight. */
  readonly claiming: ReadonlySet<string>;
  /** Outcomes on their way. */
  readonly commits: { has(runId: string): boolean; drop(runId: string): void };
  /** The id that the worker holds its claims by; null while it has no lease. */
  workerId(): string | null;
  /** A run was cancelled. */
  cancel(runId: string): void;
}

type Claims = Readonly<Record<string, string>>;

export class Holdings {
  readonly #host: HoldingsHost;
  #timeline: string | null = null;
  /** When everything is to be compared next. */
  #dueAtMs = monotonicMs() + everyMs;
  #isComparing = false;

  constructor(host: HoldingsHost) {
    this.#host = host;
  }

  /** Takes what a beat of this worker id has told. `isBack`: one before it has failed. */
  compare(workerId: string, { cancelled, held, sentAtMs, timeline }: ConfirmedBeat, isBack: boolean): void {
    const { releaser } = this.#host;
    for (const runId of Object.keys(cancelled)) this.#host.cancel(runId);
    // Cancelled runs that this worker does not execute any more, but could not let go.
    releaser.release(this.#notInHand(cancelled));
    if (held !== null) this.#compareClaims(held.claims, BigInt(held.since), sentAtMs);
    const isNewTimeline = this.#timeline !== null && timeline !== null && timeline !== this.#timeline;
    this.#timeline = timeline ?? this.#timeline;
    if (isBack || isNewTimeline) this.#dueAtMs = 0;
    if (this.#dueAtMs <= monotonicMs()) void this.#compareAll(workerId);
  }

  /** If it fails, the next beat tries again. */
  async #compareAll(workerId: string): Promise<void> {
    if (this.#isComparing) return;
    this.#isComparing = true;
    const askedAtMs = monotonicMs();
    this.#dueAtMs = askedAtMs + everyMs * (0.75 + Math.random() / 2);
    try {
      const claims = await this.#host.store.holdings(workerId);
      // The claims of a lost lease lapse like those of a dead worker.
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

  /** What this worker held, by claims from `since` on, at some time after `askedAtMs`. */
  #compareClaims(claims: Claims, since: bigint, askedAtMs: number): void {
    const { releaser, executions } = this.#host;
    const before = [...executions].filter(({ begunAtMs }) => begunAtMs < askedAtMs);
    const [recent, older] = [
      before.filter(({ claimId }) => BigInt(claimId) >= since),
      before.filter(({ claimId }) => BigInt(claimId) < since),
    ];
    this.#abortLost(recent.filter(({ runId, claimId }) => claims[runId] !== claimId));
    void this.#checkOlder(older);
    // Claims of a call whose answer never came, or whose outcome the database has lost: nobody
    // executes them.
    releaser.release(this.#notInHand(claims));
  }

  /** The beat does not say anything about claims that are older than those it was asked for. */
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
      // Its outcome is on its way: perhaps that is what ended the claim, and the guard will say.
      if (executions.get(runId) !== execution || commits.has(runId)) continue;
      execution.abort(new Error("the claim on this run was lost"));
      commits.drop(runId);
    }
  }

  /** Those of the claims that are neither executed, nor waiting in a buffer, nor just being made. */
  #notInHand(claims: Claims): HeldClaim[] {
    const { executions, claimers, claiming } = this.#host;
    const buffered = new Set([...claimers.values()].flatMap((claimer) => claimer.unstartedIds()));
    return Object.entries(claims)
      .filter(([runId, claimId]) => executions.get(runId)?.claimId !== claimId)
      .filter(([runId, claimId]) => !buffered.has(runId) && !claiming.has(claimId))
      .map(([runId, claimId]) => ({ runId, claimId }));
  }
}
