/**
 * Waits for runs to end, by long polls at a server. Calls that begin to wait in one turn of the
 * event loop share a poll. A few polls are open at most: when all are, new ids join those of the
 * smallest. After an answer, another poll asks for the runs that have not ended. An outage only
 * delays. Hints announce runs that end in this process at once. Used by the HTTP transport.
 */

import type { Logger } from "../../values/logger.js";
import { onNextTurn } from "../../timing/next-turn.js";
import { noInterval, type Polled, PollLoop } from "../../timing/poll.js";
import { RetryDelay } from "../../timing/retry-delay.js";
import { isUnreachable, ServerFault } from "../errors.js";
import type { EndedRun } from "../client-store.js";
import type { Hints } from "./hints.js";

const maxPolls = 4;
const maxIds = 1_000;
const waitSeconds = 25;
/** While some ids are in no poll, the open polls must end soon and make room. */
const crowdedSeconds = 1;
/**
 * A caller that waits no longer than this is answered by a call of its own: a poll might come too
 * late.
 */
const shortMs = 100;
/** The longest delay of a timer, 24 days. */
const longestTimerMs = 2_147_483_647;

/** Asks which of these runs have ended. The server waits up to `waitSeconds` until one has. */
type Ask = (runIds: readonly string[], waitSeconds: number, signal?: AbortSignal) => Promise<EndedRun[]>;

type Settle = (ended: EndedRun | Error) => void;

interface Poll {
  readonly runIds: readonly string[];
  readonly controller: AbortController;
}

export class HttpResults {
  readonly #ask: Ask;
  readonly #hints: Hints;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, Set<Settle>>();
  readonly #polls = new Set<Poll>();
  /** Runs that somebody waits for and that are in no poll. */
  #unasked = new Set<string>();
  readonly #retryDelay = new RetryDelay();
  readonly #loop = new PollLoop(noInterval, () => this.#openPolls());
  /** Until then no poll is opened, whatever is hinted. */
  #restUntilMs = 0;

  constructor(ask: Ask, hints: Hints, logger: Logger) {
    this.#ask = ask;
    this.#hints = hints;
    this.#logger = logger;
  }

  /** The end of a run; null once `timeoutMs` has passed. */
  async wait(runId: string, timeoutMs: number | null): Promise<EndedRun | null> {
    if (timeoutMs !== null && timeoutMs <= shortMs) {
      const [ended] = await this.#ask([runId], 0);
      if (ended !== undefined) return ended;
    }
    return new Promise((resolve, reject) => {
      const settle: Settle = (ended) => {
        finish();
        if (ended instanceof Error) reject(ended);
        else resolve(ended);
      };
      const unsubscribe = this.#hints.onEnd(runId, settle);
      const timer =
        timeoutMs === null
          ? undefined
          : setTimeout(() => (finish(), resolve(null)), Math.min(timeoutMs, longestTimerMs));
      const finish = (): void => {
        clearTimeout(timer);
        unsubscribe();
        this.#leave(runId, settle);
      };
      this.#join(runId, settle);
    });
  }

  /** Fails all calls that still wait. */
  close(reason: Error): void {
    void this.#loop.stop();
    for (const settles of this.#waiting.values()) for (const settle of settles) settle(reason);
    for (const { controller } of this.#polls) controller.abort();
  }

  #join(runId: string, settle: Settle): void {
    const settles = this.#waiting.get(runId);
    if (settles !== undefined) {
      settles.add(settle);
      return;
    }
    this.#waiting.set(runId, new Set([settle]));
    this.#unasked.add(runId);
    this.#loop.hint();
    this.#loop.start();
  }

  #leave(runId: string, settle: Settle): void {
    const settles = this.#waiting.get(runId);
    settles?.delete(settle);
    if (settles?.size !== 0) return;
    this.#waiting.delete(runId);
    this.#unasked.delete(runId);
    // A poll that nobody needs would only keep the process alive.
    for (const poll of this.#polls) {
      if (!poll.runIds.some((id) => this.#waiting.has(id))) poll.controller.abort();
    }
  }

  /** Opens polls for the runs that are in none. */
  async #openPolls(): Promise<Polled> {
    await new Promise<void>((resolve) => onNextTurn(resolve));
    const restMs = this.#restUntilMs - performance.now();
    if (restMs > 0 && this.#unasked.size > 0) return { kind: "pause", ms: restMs };
    if (this.#unasked.size > 0 && this.#polls.size >= maxPolls) this.#makeRoom();
    while (this.#unasked.size > 0 && this.#polls.size < maxPolls) {
      const runIds = [...this.#unasked].slice(0, maxIds);
      for (const runId of runIds) this.#unasked.delete(runId);
      void this.#poll({ runIds, controller: new AbortController() });
    }
    return { kind: "drained", found: false, dueAtMs: null };
  }

  /** Ends the smallest poll, if its ids and the new ones fit into one poll. */
  #makeRoom(): void {
    const [smallest] = [...this.#polls].toSorted((one, other) => one.runIds.length - other.runIds.length);
    if (smallest === undefined || smallest.runIds.length + this.#unasked.size > maxIds) return;
    this.#polls.delete(smallest);
    smallest.controller.abort();
    this.#takeBack(smallest);
  }

  #takeBack({ runIds }: Poll): void {
    for (const runId of runIds) if (this.#waiting.has(runId)) this.#unasked.add(runId);
  }

  async #poll(poll: Poll): Promise<void> {
    const { runIds, controller } = poll;
    this.#polls.add(poll);
    let pauseMs = 0;
    try {
      const seconds = this.#unasked.size > 0 ? crowdedSeconds : waitSeconds;
      const ended = await this.#ask(runIds, seconds, controller.signal);
      this.#retryDelay.reset();
      for (const run of ended) for (const settle of this.#waiting.get(run.runId) ?? []) settle(run);
      // Of many runs, more will end at any moment: do not open a poll for each of them.
      pauseMs = Math.min(20, Math.floor(runIds.length / 50));
    } catch (error) {
      if (!controller.signal.aborted) pauseMs = this.#fail(poll, error);
    }
    // Unless another poll has taken over its ids.
    if (this.#polls.delete(poll)) this.#takeBack(poll);
    if (this.#unasked.size === 0) return;
    this.#restUntilMs = performance.now() + pauseMs;
    this.#loop.hint();
  }

  /**
   * How long to wait before the next try. An error that a retry does not help goes to the callers.
   */
  #fail({ runIds }: Poll, error: unknown): number {
    if (isUnreachable(error) && !(error instanceof ServerFault)) {
      this.#logger.warn({ err: error }, "pawl: cannot read results, will retry");
      return this.#retryDelay.next();
    }
    for (const runId of runIds) {
      for (const settle of this.#waiting.get(runId) ?? []) settle(error as Error);
    }
    return 0;
  }
}
