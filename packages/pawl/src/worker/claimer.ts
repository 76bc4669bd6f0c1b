/**
 * Claims runs for the slots of one queue. It claims as many runs as slots are free. The next claim
 * follows at once while more runs wait, else when a slot frees, a hint arrives, a run falls due, or
 * the poll interval passes. If there is room for a whole further claim, that goes out before the
 * runs of this one begin, so that the database works while their code runs. While more runs wait, a slot counts as free as soon as the outcome of
 * its run is on the way to the database. A server can hold a claim open until there is work; then
 * one claim follows the other. A failed claim is repeated with backoff. Owned by the worker.
 */

import type { Emitter } from "../observe/events.js";
import type { Claimable, Claimed, WorkerStore } from "../store/store.js";
import { onNextTurn } from "../timing/next-turn.js";
import { type Polled, PollLoop } from "../timing/poll.js";
import { newClaimId } from "../values/claim-id.js";
import type { Logger } from "../values/logger.js";
import { ClaimCursor } from "./claim-cursor.js";
import { QueueSlots, type SlotsHost, type SlotsOptions } from "./slots.js";

const maxClaim = 500;
/** The pause after a waiting claim that came back empty too early: the server is about to stop. */
const earlyMs = 100;

export interface ClaimerOptions extends SlotsOptions {
  readonly queue: string;
  /** Claim only if this many slots are free. */
  readonly minDemand: number;
  readonly pollMs: number;
  readonly maxPollMs: number;
  /** How long a server may hold a claim open until there is work; null: claims answer at once. */
  readonly waitMs: number | null;
  readonly names: readonly string[];
  readonly versions: readonly number[];
}

export interface ClaimerHost extends Pick<SlotsHost, "execute" | "release"> {
  readonly store: Pick<WorkerStore, "claim">;
  readonly logger: Logger;
  readonly events: Emitter;
  /** The id to claim under; null while the worker has no lease. */
  workerId(): string | null;
  /** The ids of claims in flight: a heartbeat must not release them. */
  readonly claiming: Set<string>;
  /**
   * A claim that was sent at `askedMs` found when the next schedule is due, on the clock of
   * `performance.now()`; null: there is none.
   */
  onSchedule(dueAtMs: number | null, askedMs: number): void;
  /** The clock of a test's database stands still: moving it sends a hint. */
  isClockStill(): boolean;
}

export class Claimer {
  readonly slots: QueueSlots;
  readonly #options: ClaimerOptions;
  readonly #host: ClaimerHost;
  readonly #loop: PollLoop;
  readonly #cursor: ClaimCursor;
  #isRunning = false;
  /** More runs were due at the last claim than it was allowed to take. */
  #isBehind = false;
  /** The loop waits because too few slots are free. */
  #wantsSlot = false;
  /** The runs of the last claim begin only when the next claim is on its way. */
  #isAhead = false;
  /** A hint follows in the next turn, because outcomes are being written. */
  #isHintDue = false;
  /** Ends the claim that is held open. */
  #held: AbortController | null = null;

  constructor(options: ClaimerOptions, host: ClaimerHost) {
    this.#options = options;
    this.#host = host;
    this.#cursor = new ClaimCursor(options);
    this.slots = new QueueSlots(options, {
      execute: (claim) => host.execute(claim),
      release: (claims) => host.release(claims),
      onFree: () => this.#onFree(),
    });
    const pace = { shortestMs: options.pollMs, longestMs: options.maxPollMs };
    this.#loop = new PollLoop(pace, (isHinted) => this.#poll(isHinted));
  }

  get queue(): string {
    return this.#options.queue;
  }

  /** More runs are due than there are slots. */
  get hasBacklog(): boolean {
    return this.#isBehind || this.slots.hasUnstarted;
  }

  /** It claims more runs, because enough slots are free. */
  get isClaiming(): boolean {
    return this.#isDemand(this.slots.free);
  }

  start(): void {
    this.#isRunning = true;
    this.slots.setOpen(true);
    this.#loop.start();
  }

  /** Stops claiming, and begins no further run. Resolves when no claim is in flight. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.slots.setOpen(false);
    this.endWait();
    await this.#loop.stop();
  }

  /** Makes a claim that is held open come back with the runs it has. */
  endWait(): void {
    this.#held?.abort(new Error("the worker stopped waiting for this claim"));
  }

  /** Runs may have become claimable. */
  hint(): void {
    this.#loop.hint();
  }

  /** Runs may have become claimable that are older than the cursor. */
  rewind(): void {
    this.#cursor.rewind();
    this.hint();
  }

  /** Runs have become claimable, none of them before this in the order of claims. */
  lower(claimable: Claimable): void {
    this.#cursor.lower(claimable);
    this.hint();
  }

  /** A run becomes due after this time. */
  expect(delayMs: number): void {
    this.#loop.expectAt(this.#dueAt(performance.now(), delayMs));
  }

  /**
   * Takes a slot for a run that is being started right now; false if there is none, or others wait
   * for it.
   */
  reserve(): boolean {
    return !this.hasBacklog && this.slots.reserve();
  }

  /** The outcome of a run is being written, and then its slot is free. */
  endBegins(): void {
    this.slots.endBegins();
    if (!this.#isBehind || this.#isHintDue || !this.slots.mayClaimAhead) return;
    this.#isHintDue = true;
    // One turn of the event loop: one claim for all outcomes that are written together.
    onNextTurn(() => {
      this.#isHintDue = false;
      this.hint();
    });
  }

  /** The outcome is written. */
  endIsOver(): void {
    this.slots.endIsOver();
  }

  /** Frees the slot of a run whose code has not returned. */
  leave(): void {
    this.slots.release();
  }

  #onFree(): void {
    if (this.#isBehind || this.#wantsSlot) this.hint();
  }

  #isDemand(free: number): boolean {
    const { concurrency, prefetch, minDemand } = this.#options;
    return free >= Math.min(minDemand, concurrency + prefetch);
  }

  #dueAt(fromMs: number, delayMs: number): number {
    return delayMs > 0 && this.#host.isClockStill() ? Number.POSITIVE_INFINITY : fromMs + delayMs;
  }

  async #poll(isHinted: boolean): Promise<Polled> {
    const demand = this.slots.freeSoon;
    const workerId = this.#host.workerId();
    this.#wantsSlot = !this.#isDemand(demand) || workerId === null;
    if (this.#wantsSlot || workerId === null) {
      // Runs that are announced meanwhile are claimed as soon as a slot frees.
      this.#isBehind ||= isHinted;
      return { kind: "pause", ms: this.#options.maxPollMs };
    }
    const askedMs = performance.now();
    const claimed = await this.#claim(workerId, Math.min(demand, maxClaim));
    if (claimed === null) return { kind: "failed" };
    return this.#options.waitMs === null
      ? this.#next(claimed, askedMs)
      : this.#nextAfterWait(claimed, askedMs, this.#options.waitMs);
  }

  /**
   * When to claim again. A due time counts from when the database was asked: counted from its
   * answer, every timer would be late by the way back.
   */
  #next({ runs, more, dueMs }: Claimed, askedMs: number): Polled {
    // Else after a turn, so that the commits of this turn free their slots first.
    if (more) return { kind: this.#isAhead ? "at once" : "again" };
    return {
      kind: "drained",
      found: runs.length > 0,
      dueAtMs: dueMs === null ? null : this.#dueAt(askedMs, dueMs),
      // A claim that looked at a part of the queue does not replace one that looks at all of it.
      atMostMs: this.#cursor.restMs(),
    };
  }

  /** The server held the claim until there was work, so the next follows at once. */
  #nextAfterWait({ runs }: Claimed, askedMs: number, waitMs: number): Polled {
    const isEarly = runs.length === 0 && performance.now() - askedMs < waitMs / 2;
    return isEarly ? { kind: "pause", ms: earlyMs } : { kind: "again" };
  }

  /**
   * Claims runs and hands them to the slots. Null: it failed, or the worker has lost its lease
   * meanwhile.
   */
  async #claim(workerId: string, limit: number): Promise<Claimed | null> {
    const { queue, waitMs } = this.#options;
    const { store, claiming, logger } = this.#host;
    const claimId = newClaimId();
    claiming.add(claimId);
    const from = this.#cursor.begin();
    // A claim that looks at a part of the queue need not know of every due time.
    if (from.isWhole) this.#loop.forgetDue();
    this.#held = waitMs === null ? null : new AbortController();
    const wait =
      this.#held === null || waitMs === null ? undefined : { longestMs: waitMs, signal: this.#held.signal };
    try {
      const askedMs = performance.now();
      const claimed = await store.claim({ queue, limit, ...from, wait, workerId, claimId });
      this.#report(claimed, performance.now() - askedMs);
      const { scheduleMs } = claimed;
      if (scheduleMs !== undefined) {
        this.#host.onSchedule(scheduleMs === null ? null : askedMs + scheduleMs, askedMs);
      }
      if (this.#isRunning && this.#host.workerId() === workerId) {
        this.#cursor.accept(claimed);
        this.#isBehind = claimed.more;
        const { runs, more } = claimed;
        this.#isAhead = more && runs.length > 0 && this.slots.free - runs.length >= maxClaim;
        this.slots.add(runs, claimId, { isNextTurn: this.#isAhead });
        return claimed;
      }
      this.#host.release(claimed.runs.map(({ runId }) => ({ runId, claimId })));
      return null;
    } catch (error) {
      logger.warn({ err: error, queue }, "pawl: claim failed, trying again");
      return null;
    } finally {
      claiming.delete(claimId);
      this.#held = null;
    }
  }

  #report({ runs, throttled, setAside = [] }: Claimed, durationMs: number): void {
    const { queue } = this.#options;
    const { events, logger } = this.#host;
    for (const run of setAside) {
      logger.error({ queue, ...run }, "pawl: a run made every claim fail and is set aside");
      events.emit("run.set_aside", { queue, ...run });
    }
    if (events.hears("claim")) events.emit("claim", { queue, runs: runs.length, durationMs });
    if (throttled > 0) events.emit("run.throttled", { queue, runs: throttled });
  }
}
