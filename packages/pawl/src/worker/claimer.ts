/**
 * Keeps the slots of one queue filled: claims as many runs as there are free slots (and prefetch), again at once
 * while batches come back full, else when a slot frees, a nudge comes, a run falls due, or the poll interval passes.
 * While more work waits, a slot counts as free as soon as the outcome of its run is on the way to the database.
 * The interval adapts: short after work, growing while the queue stays empty. Where claims can wait (at a server), none of this is
 * needed: one is held open until there is work. An outage only makes it wait.
 * Owned by the worker, which executes what it claims.
 */

import type { Logger } from "../values/logger.js";
import type { Claimable, Claimed, ClaimedRun, WorkerStore } from "../store/store.js";
import { newClaimId } from "../values/claim-id.js";
import type { Emitter } from "../observe/events.js";
import type { Successor } from "../run/execution.js";
import { LowWater } from "./claim-cursor.js";
import { Patience } from "../timing/retry-delay.js";

const maxClaim = 500;
/** So long what was claimed for a slot waits for it; then others may have it, and for a while nothing is claimed ahead. */
const aheadMs = 100;
const notAheadMs = 1_000;
/** After a claim that came back with nothing although it could have waited: the server is about to stop. */
const earlyMs = 100;

export interface FeederOptions {
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

export interface FeederHost {
  readonly store: Pick<WorkerStore, "claim">;
  readonly logger: Logger;
  readonly events: Emitter;
  /** The id to claim under; null while the worker has no lease. */
  workerId(): string | null;
  /** The ids of claims in flight: what they hold is not to be let go by a beat. */
  readonly claiming: Set<string>;
  /** Claims that are not wanted after all. */
  letGo(claims: readonly { readonly runId: string; readonly claimId: string }[]): void;
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

export class Feeder {
  readonly #options: FeederOptions;
  readonly #host: FeederHost;
  readonly #patience = new Patience();
  #buffer: Unstarted[] = [];
  #active = 0;
  /** Slots whose runs have come to an outcome that is being written. */
  #ending = 0;
  #isEndingTold = false;
  /** Before this, slots are taken until they are free. */
  #aheadFromMs = 0;
  #givingBack: NodeJS.Timeout | undefined;
  #isRunning = false;
  #loop: Promise<void> = Promise.resolve();
  /** Set by whatever makes another look worth while. */
  #isNudged = false;
  #wake: (() => void) | null = null;
  #dueAtMs = Number.POSITIVE_INFINITY;
  #pollMs: number;
  readonly #lowWater: LowWater;
  #isBehind = false;
  /** The loop sleeps because no slot was free. */
  #wantsSlot = false;
  /** Ends the wait of the claim that is held open. */
  #waiting: AbortController | null = null;

  constructor(options: FeederOptions, host: FeederHost) {
    this.#options = options;
    this.#host = host;
    this.#lowWater = new LowWater(options);
    this.#pollMs = options.pollMs;
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
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#isNudged = true;
    this.#loop = this.#run();
  }

  /** Stops claiming; resolves when no claim is in flight. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.nudge();
    this.endWait();
    await this.#loop;
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

  /** Work may have come. */
  nudge(): void {
    this.#isNudged = true;
    this.#wake?.();
  }

  /** Runs older than the low-water mark have become claimable: begin at the head again. */
  rewind(): void {
    this.#lowWater.rewind();
    this.nudge();
  }

  /** Runs have become claimable, none of them before this in the order of claims. */
  lower(claimable: Claimable): void {
    this.#lowWater.lower(claimable);
    this.nudge();
  }

  /** Takes a run out of the buffer whose execution has not begun. */
  drop(runId: string): Unstarted | undefined {
    const index = this.#buffer.findIndex(({ run }) => run.runId === runId);
    return index === -1 ? undefined : this.#buffer.splice(index, 1)[0];
  }

  /** A run becomes due after this time. */
  expect(delayMs: number): void {
    const atMs = this.#dueAt(performance.now(), delayMs);
    if (atMs >= this.#dueAtMs) return;
    this.#dueAtMs = atMs;
    this.#wake?.();
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
      this.nudge();
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

  async #run(): Promise<void> {
    while (this.#isRunning) {
      const demand = this.#free + (performance.now() < this.#aheadFromMs ? 0 : this.#ending);
      const workerId = this.#host.workerId();
      if (!this.#isDemand(demand) || workerId === null) {
        // Whatever was announced meanwhile is looked for as soon as a slot frees.
        this.#wantsSlot = true;
        this.#isBehind ||= this.#isNudged;
        this.#isNudged = false;
        await this.#sleep(this.#options.maxPollMs, { forDue: false });
        continue;
      }
      this.#wantsSlot = false;
      this.#isNudged = false;
      const limit = Math.min(demand, maxClaim);
      const askedMs = performance.now();
      const claimed = await this.#claim(workerId, limit);
      if (claimed === null) {
        await this.#sleep(this.#patience.next(), { forDue: false });
        continue;
      }
      if (this.#options.waitMs !== null) await this.#rest(claimed, askedMs);
      else if (!claimed.more) await this.#idle(claimed, askedMs);
      // Let the commits of this turn free their slots before the next look.
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #claim(workerId: string, limit: number): Promise<Claimed | null> {
    const { queue, waitMs } = this.#options;
    const claimId = newClaimId();
    this.#waiting = waitMs === null ? null : new AbortController();
    this.#host.claiming.add(claimId);
    const from = this.#lowWater.look();
    // Another look need not know of every run that will be due.
    if (from.isWhole || this.#dueAtMs <= performance.now()) this.#dueAtMs = Number.POSITIVE_INFINITY;
    try {
      const wait = this.#waiting === null ? undefined : { longestMs: waitMs!, signal: this.#waiting.signal };
      const look = { queue, limit, ...from, wait };
      const askedMs = performance.now();
      const claimed = await this.#host.store.claim({ ...look, workerId, claimId });
      this.#patience.reset();
      this.#tell(claimed, performance.now() - askedMs);
      if (this.#isRunning && this.#host.workerId() === workerId) {
        this.#lowWater.accept(claimed);
        this.#accept(claimed, claimId);
        return claimed;
      }
      this.#host.letGo(claimed.runs.map(({ runId }) => ({ runId, claimId })));
      return null;
    } catch (error) {
      this.#host.logger.warn({ err: error, queue }, "pawl: claim failed, trying again");
      return null;
    } finally {
      this.#host.claiming.delete(claimId);
      this.#waiting = null;
    }
  }

  #tell({ runs, throttled, setAside = [] }: Claimed, durationMs: number): void {
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
    if (runs.length > 0) this.#pollMs = this.#options.pollMs;
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
      this.#host.letGo(claims);
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
    if (this.#isBehind || this.#wantsSlot) this.nudge();
  }

  /**
   * Nothing is left to claim: wait for a nudge, the next due time, or the poll interval. The due time counts from when the
   * database was asked: from its answer, every timer would be late by the way back.
   */
  async #idle({ runs, dueMs }: Claimed, askedMs: number): Promise<void> {
    if (dueMs !== null) this.#dueAtMs = Math.min(this.#dueAtMs, this.#dueAt(askedMs, dueMs));
    const pollMs = this.#pollMs * (0.85 + Math.random() * 0.3);
    if (runs.length === 0) this.#pollMs = Math.min(this.#pollMs * 1.5, this.#options.maxPollMs);
    // A bounded look is no substitute for the next at the whole queue.
    await this.#sleep(Math.min(pollMs, this.#lowWater.restMs() ?? pollMs), { forDue: true });
  }

  /** The claim has waited for work itself: another follows at once, unless it came back with nothing before its time. */
  async #rest({ runs }: Claimed, askedMs: number): Promise<void> {
    const isEarly = runs.length === 0 && performance.now() - askedMs < this.#options.waitMs! / 2;
    if (isEarly) await this.#sleep(earlyMs, { forDue: false });
    else await new Promise((resolve) => setImmediate(resolve));
  }

  /** Until a nudge, this long, or (unless there is no slot for it) a run falls due. */
  async #sleep(longestMs: number, { forDue }: { forDue: boolean }): Promise<void> {
    const endMs = performance.now() + longestMs;
    while (this.#isRunning && !this.#isNudged) {
      const leftMs = (forDue ? Math.min(endMs, this.#dueAtMs) : endMs) - performance.now();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.ceil(leftMs));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = null;
    }
  }
}
