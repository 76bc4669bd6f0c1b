/**
 * The slots of one queue: how many runs it executes at once, and the claimed runs that wait for a
 * slot. A slot executes a run, and then the next run of its partition key if the commit has claimed
 * it. Owned by the claimer of the queue.
 */

import type { RunClaim } from "../run/execution.js";
import type { ClaimedRun } from "../store/store.js";
import { onNextTurn } from "../timing/next-turn.js";
import type { HeldClaim } from "./release.js";

/** A run that was claimed ahead waits this long for its slot. Then other workers may have it. */
const aheadMs = 100;
/** After that, the claimer claims nothing ahead for this long. */
const notAheadMs = 1_000;

export interface SlotsOptions {
  readonly concurrency: number;
  /** Runs to claim ahead of free slots. */
  readonly prefetch: number;
}

export interface SlotsHost {
  /**
   * Executes a run until its claim has ended. Answers the next run of its slot, if the commit has
   * claimed one; "left" if the slot was freed before the code of the run returned.
   */
  execute(claim: RunClaim): Promise<RunClaim | null | "left">;
  /** Releases claims that no slot will execute. */
  release(claims: readonly HeldClaim[]): void;
  /** A slot is free. */
  onFree(): void;
}

/** A claimed run that waits for a slot. */
interface Unstarted {
  readonly run: ClaimedRun;
  readonly claimId: string;
  readonly sinceMs: number;
}

export class QueueSlots {
  readonly #options: SlotsOptions;
  readonly #host: SlotsHost;
  #unstarted: Unstarted[] = [];
  #active = 0;
  /** Slots whose outcome is being written. */
  #ending = 0;
  /** Before this time nothing is claimed ahead. */
  #aheadFromMs = 0;
  #givingBack: NodeJS.Timeout | undefined;
  #isOpen = false;

  constructor(options: SlotsOptions, host: SlotsHost) {
    this.#options = options;
    this.#host = host;
  }

  /** From now on it executes runs; or (false) begins no further one. */
  setOpen(isOpen: boolean): void {
    this.#isOpen = isOpen;
  }

  /** Free slots, and runs that may be claimed ahead of slots; negative while too many runs wait. */
  get free(): number {
    const { concurrency, prefetch } = this.#options;
    return concurrency + prefetch - this.#active - this.#unstarted.length;
  }

  /**
   * The same, with the slots whose outcome is being written, unless nothing may be claimed ahead.
   */
  get freeSoon(): number {
    return this.free + (this.mayClaimAhead ? this.#ending : 0);
  }

  get mayClaimAhead(): boolean {
    return performance.now() >= this.#aheadFromMs;
  }

  get hasUnstarted(): boolean {
    return this.#unstarted.length > 0;
  }

  /** The claimed runs that wait for a slot. */
  unstartedIds(): string[] {
    return this.#unstarted.map(({ run }) => run.runId);
  }

  /** The claims of runs that wait for a slot, which it forgets. */
  takeUnstarted(): HeldClaim[] {
    const claims = this.#unstarted.map(claimOf);
    this.#unstarted = [];
    return claims;
  }

  /** The claim of a run that waits for a slot, which it forgets. */
  drop(runId: string): HeldClaim | undefined {
    const index = this.#unstarted.findIndex(({ run }) => run.runId === runId);
    return index === -1 ? undefined : claimOf(this.#unstarted.splice(index, 1)[0]!);
  }

  /** Executes claimed runs, as soon as slots are free, but not in this turn if `isNextTurn`. */
  add(runs: readonly ClaimedRun[], claimId: string, { isNextTurn }: { isNextTurn: boolean }): void {
    const sinceMs = performance.now();
    for (const run of runs) this.#unstarted.push({ run, claimId, sinceMs });
    if (isNextTurn) onNextTurn(() => this.#start());
    else this.#start();
    if (this.free < 0) this.#watchUnstarted();
  }

  /** Takes a free slot for a run that is being started right now; false if there is none. */
  reserve(): boolean {
    if (!this.#isOpen || this.#active >= this.#options.concurrency) return false;
    this.#active++;
    return true;
  }

  /** Executes a run in a reserved slot. */
  fill(run: ClaimedRun, claimId: string): void {
    this.#execute({ run, claimId, claimedAtMs: performance.now(), chain: newChain() });
  }

  /**
   * Frees a reserved slot, or the slot of a run whose code has not returned (`execute` answers
   * "left").
   */
  release(): void {
    this.give(1);
  }

  /** Takes slots without a run, also if none is free. */
  take(count: number): void {
    this.#active += count;
  }

  /** Frees them. */
  give(count: number): void {
    if (count === 0) return;
    this.#active -= count;
    this.#start();
    this.#host.onFree();
  }

  /** The outcome of a run is being written, and then its slot is free. */
  endBegins(): void {
    this.#ending++;
  }

  /** The outcome is written. */
  endIsOver(): void {
    this.#ending--;
  }

  #start(): void {
    if (this.#unstarted.length === 0 || !this.#isOpen) return;
    const chain = newChain();
    while (this.#active < this.#options.concurrency) {
      const next = this.#unstarted.shift();
      if (next === undefined) return;
      this.#active++;
      this.#execute({ run: next.run, claimId: next.claimId, claimedAtMs: next.sinceMs, chain });
    }
  }

  #execute(claim: RunClaim): void {
    void this.#host.execute(claim).then(this.#onExecuted);
  }

  /** One for all runs: a run costs no function. */
  readonly #onExecuted = (after: RunClaim | null | "left"): void => {
    if (after === null) this.release();
    else if (after !== "left") this.#execute(after);
  };

  /** Releases runs that were claimed ahead and have waited too long for a slot. */
  #watchUnstarted(): void {
    if (this.#givingBack !== undefined) return;
    this.#givingBack = setTimeout(() => {
      this.#givingBack = undefined;
      const surplus = -this.free;
      if (surplus <= 0) return;
      const nowMs = performance.now();
      if (nowMs - this.#unstarted.at(-surplus)!.sinceMs < aheadMs) return this.#watchUnstarted();
      this.#aheadFromMs = nowMs + notAheadMs;
      this.#host.release(this.#unstarted.splice(-surplus).map(claimOf));
    }, aheadMs).unref();
  }
}

function claimOf({ run, claimId }: Unstarted): HeldClaim {
  return { runId: run.runId, claimId };
}

function newChain(): RunClaim["chain"] {
  return { sinceMs: performance.now(), count: 0 };
}
