/**
 * Waits for runs to end, by long polls at a server. Those that begin to wait in one turn share a poll; a few polls are open at most,
 * and who comes when all are takes over the ids of the smallest. A poll that was answered is followed by another for those that
 * still wait. An outage only delays. A run that ends in this process is announced at once. Used by the HTTP client.
 */

import type { Logger } from "../../values/logger.js";
import type { Hub } from "../../local/hub.js";
import { RetryDelay } from "../../timing/retry-delay.js";
import { onNextTurn } from "../../timing/next-turn.js";
import { isUnreachable, ServerFault } from "../refused.js";
import type { EndedRun } from "../store.js";
import type { HttpClientStore } from "./http-client-store.js";

const maxPolls = 4;
const maxIds = 1_000;
const waitSeconds = 25;
/** While some ids find no place in a poll, the others must make room soon. */
const crowdedSeconds = 1;
/** Who waits no longer than this gets a look at once: a poll might come too late. */
const shortMs = 100;

type Settle = (ended: EndedRun | Error) => void;

interface Poll {
  readonly runIds: readonly string[];
  readonly controller: AbortController;
}

export class HttpResults {
  readonly #store: Pick<HttpClientStore, "ended">;
  readonly #hub: Hub;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, Set<Settle>>();
  readonly #polls = new Set<Poll>();
  /** Runs that somebody waits for and that are in no poll. */
  #unasked = new Set<string>();
  readonly #retryDelay = new RetryDelay();
  #isScheduled = false;
  #isClosed = false;

  constructor(store: Pick<HttpClientStore, "ended">, hub: Hub, logger: Logger) {
    this.#store = store;
    this.#hub = hub;
    this.#logger = logger;
  }

  /** The end of a run; null once `timeoutMs` has passed without it. */
  async wait(runId: string, timeoutMs: number | null): Promise<EndedRun | null> {
    if (timeoutMs !== null && timeoutMs <= shortMs) {
      const [ended] = await this.#store.ended([runId], 0);
      if (ended !== undefined) return ended;
    }
    return new Promise((resolve, reject) => {
      const settle: Settle = (ended) => {
        finish();
        if (ended instanceof Error) reject(ended);
        else resolve(ended);
      };
      const forget = this.#hub.await(runId, settle);
      const timer =
        timeoutMs === null
          ? undefined
          : // The longest that a timer takes; nobody waits 24 days for more.
            setTimeout(() => (finish(), resolve(null)), Math.min(timeoutMs, 2 ** 31 - 1));
      const finish = (): void => {
        clearTimeout(timer);
        forget();
        this.#leave(runId, settle);
      };
      this.#join(runId, settle);
    });
  }

  /** Gives up on everything that still waits. */
  close(reason: Error): void {
    this.#isClosed = true;
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
    this.#schedule();
  }

  #leave(runId: string, settle: Settle): void {
    const settles = this.#waiting.get(runId);
    settles?.delete(settle);
    if (settles?.size !== 0) return;
    this.#waiting.delete(runId);
    this.#unasked.delete(runId);
    // A poll that nobody waits for any more would only keep the process alive.
    for (const poll of this.#polls) {
      if (!poll.runIds.some((id) => this.#waiting.has(id))) poll.controller.abort();
    }
  }

  #schedule(afterMs = 0): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    const ask = (): void => {
      this.#isScheduled = false;
      this.#ask();
    };
    if (afterMs === 0) onNextTurn(ask);
    else setTimeout(ask, afterMs);
  }

  /** Opens polls for those that are in none. */
  #ask(): void {
    if (this.#isClosed) return;
    if (this.#unasked.size > 0 && this.#polls.size >= maxPolls) this.#makeRoom();
    while (this.#unasked.size > 0 && this.#polls.size < maxPolls) {
      const runIds = [...this.#unasked].slice(0, maxIds);
      for (const runId of runIds) this.#unasked.delete(runId);
      void this.#poll({ runIds, controller: new AbortController() });
    }
  }

  /** Ends the smallest poll, if its ids and the new ones fit into one. */
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
      const ended = await this.#store.ended(runIds, seconds, controller.signal);
      this.#retryDelay.reset();
      for (const run of ended) for (const settle of this.#waiting.get(run.runId) ?? []) settle(run);
      // Of many, some more will end at any moment: not a poll for each of them.
      pauseMs = Math.min(20, Math.floor(runIds.length / 50));
    } catch (error) {
      if (!controller.signal.aborted) pauseMs = this.#fail(poll, error);
    }
    // Unless others have taken its ids over.
    if (this.#polls.delete(poll)) this.#takeBack(poll);
    if (this.#unasked.size > 0) this.#schedule(pauseMs);
  }

  /** How long to wait before the next try; whoever asked for what the server refuses is told so. */
  #fail({ runIds }: Poll, error: unknown): number {
    if (isUnreachable(error) && !(error instanceof ServerFault)) {
      this.#logger.warn({ err: error }, "pawl: results cannot be read, trying again");
      return this.#retryDelay.next();
    }
    for (const runId of runIds) {
      for (const settle of this.#waiting.get(runId) ?? []) settle(error as Error);
    }
    return 0;
  }
}
