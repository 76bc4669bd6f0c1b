/**
 * The polling loop. It polls, decides how long to wait, and polls again. Four things end a wait:
 * its time, a hint that work may have arrived, a due time, or `stop`. At most one poll is in
 * flight. Hints only save time: a hint that arrives during a poll makes the next poll follow at
 * once.
 *
 * `decideWait` holds the rules and is pure. `PollLoop` holds the timer. Used by the claimer, by
 * waits for results and messages, and by the server for workers that wait there.
 */

import { onNextTurn } from "./next-turn.js";
import { retryDelayMs } from "./retry-delay.js";

/** The interval between polls: the shortest after work, growing to the longest without any. */
export interface Pace {
  readonly shortestMs: number;
  readonly longestMs: number;
}

/** For a loop that polls after a hint or at a due time only. */
export const noInterval: Pace = {
  shortestMs: Number.POSITIVE_INFINITY,
  longestMs: Number.POSITIVE_INFINITY,
};

/** The answer of one poll. It decides when the next one follows. */
export type Polled =
  /** More work waits, and there is room for it. Poll again in this turn of the event loop. */
  | { readonly kind: "at once" }
  /** More work waits. Poll again after one turn of the event loop. */
  | { readonly kind: "again" }
  /** Nothing is left. Wait for the poll interval, a hint, or a due time. */
  | {
      readonly kind: "drained";
      /** This poll brought something: the interval is the shortest again. */
      readonly found: boolean;
      /** When something falls due, on the clock of `performance.now()`; null: not known. */
      readonly dueAtMs: number | null;
      /** Poll after this time at the latest, whatever the interval is. */
      readonly atMostMs?: number | null;
    }
  /** Wait this long, or for a hint. Due times do not count. */
  | { readonly kind: "pause"; readonly ms: number }
  /** The poll failed. Wait like `pause`, longer after each failure in a row; earlier hints are forgotten. */
  | { readonly kind: "failed" };

/** The pacing after the polls so far. */
export interface PollState {
  readonly intervalMs: number;
  /** Failures in a row. */
  readonly failures: number;
}

export interface Wait {
  /** null: wait one turn of the event loop and for nothing else. */
  readonly longestMs: number | null;
  /** A due time ends the wait. */
  readonly forWork: boolean;
}

/** The interval after a poll that found nothing. */
export function longerInterval(intervalMs: number, { longestMs }: Pace): number {
  return Math.min(intervalMs * 1.5, longestMs);
}

/**
 * Decides how long to wait after a poll. `random` is between 0 and 1: a fleet must not poll in
 * step.
 */
export function decideWait(
  polled: Polled,
  { intervalMs, failures }: PollState,
  pace: Pace,
  random: number,
): { readonly wait: Wait; readonly state: PollState } {
  switch (polled.kind) {
    case "at once":
    case "again":
      return {
        wait: { longestMs: null, forWork: true },
        state: { intervalMs: pace.shortestMs, failures: 0 },
      };
    case "drained": {
      const currentMs = polled.found ? pace.shortestMs : intervalMs;
      const spreadMs = currentMs * (0.85 + random * 0.3);
      return {
        wait: { longestMs: Math.min(spreadMs, polled.atMostMs ?? spreadMs), forWork: true },
        state: {
          intervalMs: polled.found ? currentMs : longerInterval(currentMs, pace),
          failures: 0,
        },
      };
    }
    case "pause":
      return { wait: { longestMs: polled.ms, forWork: false }, state: { intervalMs, failures: 0 } };
    case "failed":
      return {
        wait: { longestMs: retryDelayMs(failures, random), forWork: false },
        state: { intervalMs, failures: failures + 1 },
      };
  }
}

export class PollLoop {
  readonly #pace: Pace;
  readonly #poll: (isHinted: boolean) => Promise<Polled>;
  #state: PollState;
  #isWanted = false;
  #running: Promise<void> | null = null;
  #isHinted = false;
  #dueAtMs = Number.POSITIVE_INFINITY;
  /** Ends the wait, while there is one. */
  #wake: (() => void) | null = null;

  /**
   * `poll` must not reject: it handles its errors and answers `failed`. `isHinted`: a hint arrived
   * since the last poll.
   */
  constructor(pace: Pace, poll: (isHinted: boolean) => Promise<Polled>) {
    this.#pace = pace;
    this.#poll = poll;
    this.#state = { intervalMs: pace.shortestMs, failures: 0 };
  }

  /** Whether it polls, or waits to poll. */
  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Begins with a poll. A loop that is about to stop goes on, with a poll at once. */
  start(): void {
    if (!this.#isWanted) this.hint();
    this.#isWanted = true;
    this.#running ??= this.#run();
  }

  /** Resolves when no poll is in flight. `start` may begin it again. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#wake?.();
    await this.#running;
  }

  /** Work may have arrived: poll at once, or as soon as the poll in flight has ended. */
  hint(): void {
    this.#isHinted = true;
    this.#wake?.();
  }

  /** Something falls due at this time, on the clock of `performance.now()`. */
  expectAt(atMs: number): void {
    if (atMs >= this.#dueAtMs) return;
    this.#dueAtMs = atMs;
    this.#wake?.();
  }

  /** Forgets due times: the poll that begins now answers the next one. */
  forgetDue(): void {
    this.#dueAtMs = Number.POSITIVE_INFINITY;
  }

  async #run(): Promise<void> {
    while (this.#isWanted) {
      const isHinted = this.#isHinted;
      this.#isHinted = false;
      if (this.#dueAtMs <= performance.now()) this.forgetDue();
      const polled = await this.#poll(isHinted);
      const { wait, state } = decideWait(polled, this.#state, this.#pace, Math.random());
      this.#state = state;
      if (polled.kind === "drained" && polled.dueAtMs !== null) this.expectAt(polled.dueAtMs);
      // Hints must not shorten the pause after a failure. Any other hint counts, whenever it came.
      if (polled.kind === "failed") this.#isHinted = false;
      if (polled.kind === "at once") continue;
      if (wait.longestMs === null) await new Promise<void>((resolve) => onNextTurn(resolve));
      else await this.#wait(wait.longestMs, wait.forWork);
    }
    this.#running = null;
  }

  async #wait(longestMs: number, forWork: boolean): Promise<void> {
    const endMs = performance.now() + longestMs;
    while (this.#isWanted && !this.#isHinted) {
      const leftMs = (forWork ? Math.min(endMs, this.#dueAtMs) : endMs) - performance.now();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => {
        // Without an end, only a hint, a due time or `stop` ends it, and no timer keeps the process
        // alive.
        const timer = leftMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(resolve, timerMs(leftMs));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = null;
    }
  }
}

/** Node fires a timer with a longer delay at once. */
const longestTimerMs = 2_147_483_647;

function timerMs(leftMs: number): number {
  return Math.min(Math.ceil(leftMs), longestTimerMs);
}
