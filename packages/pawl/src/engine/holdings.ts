/**
 * Compares what the database says at a beat with what the worker has in hand: executions whose run was cancelled or whose claim is
 * gone are aborted, and claims that nobody executes are let go. Owned by the worker.
 */

import type { Logger } from "../define/logger.js";
import type { WorkerStore } from "../store/store.js";
import type { Execution } from "./execution.js";
import type { Executions } from "./executions.js";
import type { Feeder } from "./feeder.js";
import type { ConfirmedBeat } from "./heartbeat.js";
import type { Releaser } from "./releaser.js";

export interface HoldingsHost {
  readonly store: Pick<WorkerStore, "held">;
  readonly logger: Logger;
  readonly releaser: Releaser;
  readonly executions: Executions;
  readonly feeders: ReadonlyMap<string, Feeder>;
  /** The ids of claims in flight. */
  readonly claiming: ReadonlySet<string>;
  /** Outcomes on their way. */
  readonly flusher: { has(runId: string): boolean; drop(runId: string): void };
  /** A run was cancelled. */
  cancel(runId: string): void;
}

type Claims = Readonly<Record<string, string>>;

export class Holdings {
  readonly #host: HoldingsHost;

  constructor(host: HoldingsHost) {
    this.#host = host;
  }

  compare({ cancelled, held, sentAtMs }: ConfirmedBeat): void {
    const { releaser, executions } = this.#host;
    for (const runId of Object.keys(cancelled)) this.#host.cancel(runId);
    // Cancelled runs that this worker does not execute any more, but could not let go.
    releaser.release(this.#notInHand(cancelled));
    if (held === null) return;
    const since = BigInt(held.since);
    const before = [...executions].filter(({ begunAtMs }) => begunAtMs < sentAtMs);
    const [recent, older] = [
      before.filter(({ claimId }) => BigInt(claimId) >= since),
      before.filter(({ claimId }) => BigInt(claimId) < since),
    ];
    this.#abortLost(recent.filter(({ runId, claimId }) => held.claims[runId] !== claimId));
    void this.#checkOlder(older);
    // Claims of a call whose answer never came: nobody executes them.
    releaser.release(this.#notInHand(held.claims));
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
    const { executions, flusher } = this.#host;
    for (const execution of lost) {
      const { runId } = execution;
      // Its outcome is on its way: perhaps that is what ended the claim, and the guard will say.
      if (executions.get(runId) !== execution || flusher.has(runId)) continue;
      execution.abort(new Error("the claim on this run was lost"));
      flusher.drop(runId);
    }
  }

  /** Those of the claims that are neither executed, nor waiting in a buffer, nor just being made. */
  #notInHand(claims: Claims): { runId: string; claimId: string }[] {
    const { executions, feeders, claiming } = this.#host;
    const buffered = new Set([...feeders.values()].flatMap((feeder) => feeder.unstartedIds()));
    return Object.entries(claims)
      .filter(([runId, claimId]) => executions.get(runId)?.claimId !== claimId)
      .filter(([runId, claimId]) => !buffered.has(runId) && !claiming.has(claimId))
      .map(([runId, claimId]) => ({ runId, claimId }));
  }
}
