/**
 * Claims runs for one queue. It claims as many runs as slots are free (and prefetch allows). The
 * next claim follows at once while more runs wait, else when a slot frees, a hint arrives, a run
 * falls due, or the poll interval passes. While more runs wait, a slot counts as free as soon as the
 * outcome of its run is on the way to the database. A server can hold a claim open until there is
 * work; then one claim follows the other. A failed claim is repeated with backoff.
 * Owned by the worker, which executes the claimed runs.
 */

import type { Logger } from "../values/logger.js";
import type { Claimable, Claimed, ClaimedRun, WorkerStore } from "../store/store.js";
import { newClaimId } from "../values/claim-id.js";
import type { Emitter } from "../observe/events.js";
import type { Successor } from "../run/execution.js";
import { ClaimCursor } from "./claim-cursor.js";
import { type Polled, PollLoop } from "../timing/poll.js";

const maxClaim = 500;
/** So long what was claimed for a slot waits for it; then others may have it, and for a while nothing is claimed ahead. */
const aheadMs = 100;
const notAheadMs = 1_000;
/** After a claim that came back with nothing although it could have waited: the server is about to stop. */
const earlyMs = 100;

export interface ClaimerOptions {
  readonly queue: string;
  readonly concurrency: number;
  readonly prefetch: number;
  readonly minDemand: number;
  readonly pollMs: number;
  readonly maxPollMs: number;
  /** How long a claim may be held back until there is work; null: claims answer at once. */
  readonly waitMs: number | null;
  readonly names: readonly string[];
  readonly versions: readonly number[];
}

export interface ClaimerHost {
  readonly store: Pick<WorkerStore, "claim">;
  readonly logger: Logger;
  readonly events: Emitter;
  /** The id to claim under; null while the worker has no lease. */
  workerId(): string | null;
  /** The ids of claims in flight: what they hold is not to be let go by a beat. */
  readonly claiming: Set<string>;
  /** Claims that are not wanted after all. */
  release(claims: readonly { readonly runId: string; readonly claimId: string }[]): void;
  /** Whether the clock stands still: who moves it nudges. */
  isClockStill(): boolean;
  /** Executes a run; resolves when its claim has ended, with the run that was handed over to its slot, if one was. */
  execute(run: Successor): Promise<Successor | null | "left">;
}

interface Unstarted {
  readonly run: ClaimedRun;
  readonly claimId: string;
  readonly sinceMs: number;
}

const newChain = (): Successor["chain"] => ({ sinceMs: performance.now(), count: 0 });

export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #host: ClaimerHost;
  #buffer: Unstarted[] = [];
  #active = 0;
  /** Slots whose runs have come to an outcome that is being written. */
  #ending = 0;
  #isEndingTold = false;
  /** Before this, slots are taken until they are free. */
  #aheadFromMs = 0;
  #givingBack: NodeJS.Timeout | undefined;
  #isRunning = false;
  readonly #loop: PollLoop;
  readonly #cursor: ClaimCursor;
  #isBehind = false;
  /** The loop sleeps because no slot was free. */
  #wantsSlot = false;
  /** Ends the wait of the claim that is held open. */
  #waiting: AbortController | null = null;

  constructor(options: ClaimerOptions, host: ClaimerHost) {
    this.#options = options;
    this.#host = host;
    this.#cursor = new ClaimCursor(options);
    const pace = { shortestMs: options.pollMs, longestMs: options.maxPollMs };
    this.#loop = new PollLoop(pace, (isHinted) => this.#poll(isHinted));
  }

  /** More runs are due than there are slots. */
  get hasBacklog(): boolean {
    return this.#isBehind || this.#buffer.length > 0;
  }

  /** It looks for more runs, because enough slots are free. */
  get isLooking(): boolean {
    return this.#isDemand(this.#free);
  }

  /** Slots and places to claim ahead that nothing has. */
  get #free(): number {
    const { concurrency, prefetch } = this.#options;
    return concurrency + prefetch - this.#active - this.#buffer.length;
  }

  #isDemand(places: number): boolean {
    const { concurrency, prefetch, minDemand } = this.#options;
    return places >= Math.min(minDemand, concurrency + prefetch);
  }

  start(): void {
    this.#isRunning = true;
    this.#loop.start();
  }

  /** Stops claiming; resolves when no claim is in flight. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.endWait();
    await this.#loop.stop();
  }

  /** A claim that is held open is not wanted any more: it comes back with what it has. */
  endWait(): void {
    this.#waiting?.abort(new Error("the worker does not wait for this claim any more"));
  }

  /** Claimed runs whose execution has not begun, taken out of the buffer. */
  takeUnstarted(): Unstarted[] {
    const unstarted = this.#buffer;
    this.#buffer = [];
    return unstarted;
  }

  /** The runs that wait in the buffer. */
  unstartedIds(): string[] {
    return this.#buffer.map(({ run }) => run.runId);
  }

  /** Runs may have become claimable. */
  hint(): void {
    this.#loop.hint();
  }

  /** Runs older than the low-water mark have become claimable: begin at the head again. */
  rewind(): void {
    this.#cursor.rewind();
    this.hint();
  }

  /** Runs have become claimable, none of them before this in the order of claims. */
  lower(claimable: Claimable): void {
    this.#cursor.lower(claimable);
    this.hint();
  }

  /** Takes a run out of the buffer whose execution has not begun. */
  drop(runId: string): Unstarted | undefined {
    const index = this.#buffer.findIndex(({ run }) => run.runId === runId);
    return index === -1 ? undefined : this.#buffer.splice(index, 1)[0];
  }

  /** A run becomes due after this time. */
  expect(delayMs: number): void {
    this.#loop.expectAt(this.#dueAt(performance.now(), delayMs));
  }

  #dueAt(fromMs: number, delayMs: number): number {
    return delayMs > 0 && this.#host.isClockStill() ? Number.POSITIVE_INFINITY : fromMs + delayMs;
  }

  /** Takes a slot for a run that is being started right now; false if there is none, or others wait for it. */
  reserve(): boolean {
    if (!this.#isRunning || this.hasBacklog || this.#active >= this.#options.concurrency) return false;
    this.#active++;
    return true;
  }

  /** Gives a slot back that `reserve` took. */
  unreserve(): void {
    this.#freeSlot();
  }

  /** What has become of a run is being written, and then its slot is free. */
  endBegins(): void {
    this.#ending++;
    if (!this.#isBehind || this.#isEndingTold || performance.now() < this.#aheadFromMs) return;
    this.#isEndingTold = true;
    // One turn of the event loop: the ends that are written together are claimed for together.
    setImmediate(() => {
      this.#isEndingTold = false;
      this.hint();
    });
  }

  /** It is written. */
  endIsOver(): void {
    this.#ending--;
  }

  /** Executes a run in a slot that `reserve` took. */
  async fill(run: ClaimedRun, claimId: string): Promise<void> {
    await this.#work({ run, claimId, chain: newChain() });
  }

  async #poll(isHinted: boolean): Promise<Polled> {
    const { maxPollMs } = this.#options;
    const demand = this.#free + (performance.now() < this.#aheadFromMs ? 0 : this.#ending);
    const workerId = this.#host.workerId();
    if (!this.#isDemand(demand) || workerId === null) {
      // Work that is announced meanwhile is claimed as soon as a slot frees.
      this.#wantsSlot = true;
      this.#isBehind ||= isHinted;
      return { kind: "pause", ms: maxPollMs };
    }
    this.#wantsSlot = false;
    const askedMs = performance.now();
    const claimed = await this.#claim(workerId, Math.min(demand, maxClaim));
    if (claimed === null) return { kind: "failed" };
    return this.#options.waitMs === null
      ? this.#next(claimed, askedMs)
      : this.#nextAfterWait(claimed, askedMs);
  }

  /**
   * When to claim again. A due time counts from when the database was asked: counted from its
   * answer, every timer would be late by the way back.
   */
  #next({ runs, more, dueMs }: Claimed, askedMs: number): Polled {
    // After a turn, so that the commits of this turn free their slots first.
    if (more) return { kind: "again" };
    return {
      kind: "drained",
      found: runs.length > 0,
      dueAtMs: dueMs === null ? null : this.#dueAt(askedMs, dueMs),
      // A claim that looked at a part of the queue does not replace one that looks at all of it.
      atMostMs: this.#cursor.restMs(),
    };
  }

  /** The claim waited for work itself, so the next follows at once. If it came back empty too early, it pauses. */
  #nextAfterWait({ runs }: Claimed, askedMs: number): Polled {
    const isEarly = runs.length === 0 && performance.now() - askedMs < this.#options.waitMs! / 2;
    return isEarly ? { kind: "pause", ms: earlyMs } : { kind: "again" };
  }

  async #claim(workerId: string, limit: number): Promise<Claimed | null> {
    const { queue, waitMs } = this.#options;
    const claimId = newClaimId();
    this.#waiting = waitMs === null ? null : new AbortController();
    this.#host.claiming.add(claimId);
    const from = this.#cursor.begin();
    // A claim that looks at a part of the queue need not know of every due time.
    if (from.isWhole) this.#loop.forgetDue();
    try {
      const wait = this.#waiting === null ? undefined : { longestMs: waitMs!, signal: this.#waiting.signal };
      const askedMs = performance.now();
      const claimed = await this.#host.store.claim({ queue, limit, ...from, wait, workerId, claimId });
      this.#report(claimed, performance.now() - askedMs);
      if (this.#isRunning && this.#host.workerId() === workerId) {
        this.#cursor.accept(claimed);
        this.#accept(claimed, claimId);
        return claimed;
      }
      this.#host.release(claimed.runs.map(({ runId }) => ({ runId, claimId })));
      return null;
    } catch (error) {
      this.#host.logger.warn({ err: error, queue }, "pawl: claim failed, trying again");
      return null;
    } finally {
      this.#host.claiming.delete(claimId);
      this.#waiting = null;
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

  #accept({ runs, more }: Claimed, claimId: string): void {
    this.#isBehind = more;
    const sinceMs = performance.now();
    for (const run of runs) this.#buffer.push({ run, claimId, sinceMs });
    this.#dispatch();
    if (this.#free < 0) this.#watchBuffer();
  }

  /** What has waited too long for a slot that was about to be free is let go. */
  #watchBuffer(): void {
    if (this.#givingBack !== undefined) return;
    this.#givingBack = setTimeout(() => {
      this.#givingBack = undefined;
      const surplus = -this.#free;
      if (surplus <= 0) return;
      const nowMs = performance.now();
      if (nowMs - this.#buffer.at(-surplus)!.sinceMs < aheadMs) return this.#watchBuffer();
      this.#aheadFromMs = nowMs + notAheadMs;
      const claims = this.#buffer.splice(-surplus).map(({ run, claimId }) => ({ runId: run.runId, claimId }));
      this.#host.release(claims);
    }, aheadMs).unref();
  }

  #dispatch(): void {
    if (this.#buffer.length === 0 || !this.#isRunning) return;
    const chain = newChain();
    while (this.#active < this.#options.concurrency) {
      const next = this.#buffer.shift();
      if (next === undefined) return;
      this.#active++;
      void this.#work({ run: next.run, claimId: next.claimId, chain });
    }
  }

  /** Executes a run, and whatever is handed over to its slot after it. */
  async #work(first: Successor): Promise<void> {
    for (let next: Successor | null = first; next !== null;) {
      const after = await this.#host.execute(next);
      if (after === "left") return;
      next = after;
    }
    this.#freeSlot();
  }

  /** Frees the slot of a run whose code has not returned; `execute` will answer "left". */
  leave(): void {
    this.#freeSlot();
  }

  /** A slot is free: for the buffer, else for another look, if work was left over at the last. */
  #freeSlot(): void {
    this.#active--;
    this.#dispatch();
    if (this.#isBehind || this.#wantsSlot) this.hint();
  }
}
