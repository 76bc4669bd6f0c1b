/**
 * The workers that wait here for runs: one line per queue, token and set of served definitions (`waiter-group.ts`). It is told of work like
 * a worker of this process, and so hears at once of whatever goes through this server. Never hands a claim to somebody who has gone,
 * and leaves none behind when the server closes. Used by the routes of the worker protocol.
 */

import { type Claimable, type Hub, Lanes, type LocalWorker, type PostgresStore } from "pawl/engine";
import { Forbidden, type Logger } from "pawl";
import { type Ask, type Found, type GroupHost, nothing, type Waiter, WaiterGroup } from "./waiter-group.js";

/** How long the line of a queue is remembered after the last one has left: where to look next is known then. */
const forgetMs = 5_000;

export interface WaitersOptions {
  readonly store: Pick<PostgresStore, "ownedBy" | "release">;
  readonly hub: Hub;
  readonly logger: Logger;
  /** How many looks at the database one token may have under way: the other connections are for the others. */
  readonly looksPerToken: number;
}

export class Waiters implements LocalWorker {
  readonly #store: { claim: GroupHost["store"]["claim"]; release: PostgresStore["release"] };
  readonly #hub: Hub;
  readonly #logger: Logger;
  /** By queue, then by token and what is served: a caller delays nobody but its own. */
  readonly #groups = new Map<string, Map<string, WaiterGroup>>();
  /** Claims that are just being let go. */
  readonly #releases = new Set<Promise<void>>();
  /** The looks of each token: it may have a line for every set of definitions that it can think of. */
  readonly #lanes = new Map<string, Lanes>();
  readonly #looksPerToken: number;
  #isClosed = false;

  constructor({ store, hub, logger, looksPerToken }: WaitersOptions) {
    this.#looksPerToken = looksPerToken;
    this.#store = {
      claim: async (request) => {
        const claimed = await this.#inLane(request.owner, () => store.ownedBy(request.owner).claim(request));
        // Told here: the workers see what they get, and not what the database puts off.
        const { throttled, setAside = [] } = claimed;
        const { queue } = request;
        if (throttled > 0) hub.emit("run.throttled", { queue, runs: throttled });
        for (const run of setAside) {
          logger.error({ queue, ...run }, "pawl: a run made every claim fail and is set aside");
          hub.emit("run.set_aside", { queue, ...run });
        }
        return claimed;
      },
      release: (claims) => store.release(claims),
    };
    this.#hub = hub;
    this.#logger = logger;
    hub.workers.add(this);
  }

  /** Runs for this worker, as soon as there are some; none once the time has passed, or the server closes. `signal`: he has gone. */
  async claim(ask: Ask, longestMs: number, signal: AbortSignal): Promise<Found> {
    if (this.#isClosed || signal.aborted) return nothing;
    if (longestMs === 0) {
      const { runs, more } = await this.#store.claim({ ...ask, floor: null });
      return { runs, more };
    }
    return new Promise((resolve, reject) => {
      const group = this.#groupOf(ask);
      const leave = (): void => {
        waiter.isGone = true;
        group.settle(waiter);
      };
      const timer = setTimeout(() => {
        waiter.isDue = true;
        group.settle(waiter);
      }, longestMs);
      const waiter: Waiter = {
        ask,
        sinceMs: performance.now(),
        isDue: false,
        isGone: false,
        answer: (found) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", leave);
          if (found instanceof Error) reject(found);
          else resolve(found);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      group.join(waiter);
    });
  }

  /** This worker does not want to wait any more for this claim. Throws if the claim came with another token. */
  end({ workerId, claimId, owner }: Pick<Ask, "workerId" | "claimId" | "owner">): void {
    for (const group of this.#all()) {
      group.end(({ ask }) => {
        if (ask.workerId !== workerId || ask.claimId !== claimId) return false;
        if (owner === null || ask.owner === owner) return true;
        throw new Forbidden(
          `the worker "${workerId}" does not wait here with this token: end your own claims only`,
        );
      });
    }
  }

  /** Lets claims go that never reached their worker. */
  letGo(queue: string, runs: Found["runs"], claimId: string): void {
    if (runs.length === 0) return;
    const claims = runs.map(({ runId }) => ({ runId, claimId }));
    const released = this.#store.release(claims).then(
      () => {
        this.rewind();
        this.#hub.nudge(queue);
      },
      (error: unknown) => {
        this.#logger.warn({ err: error, runs: claims.length }, "pawl: claims could not be let go");
      },
    );
    this.#releases.add(released);
    void released.then(() => this.#releases.delete(released));
  }

  /** Answers everybody at once. */
  beginClosing(): void {
    this.#isClosed = true;
    this.#hub.workers.delete(this);
    for (const group of this.#all()) group.end(() => true);
  }

  /** Resolves when no claim is left that nobody executes. */
  async close(): Promise<void> {
    this.beginClosing();
    while (this.#releases.size > 0) await Promise.all(this.#releases);
  }

  /** Older runs than those last looked at have become claimable, anywhere. */
  rewind(): void {
    for (const group of this.#all()) group.rewind();
  }

  nudge(queue: string | null): void {
    if (queue === null) this.rewind();
    else for (const group of this.#of(queue)) group.nudge();
  }

  lower(claimable: Claimable): void {
    for (const group of this.#of(claimable.queue)) group.lower(claimable);
  }

  expect(queue: string, delayMs: number): void {
    for (const group of this.#of(queue)) group.expect(delayMs);
  }

  // Nothing is executed here: a claim is always made in the name of a worker elsewhere, who hears of the rest by its beats.
  reserve(): null {
    return null;
  }

  offer(): null {
    return null;
  }

  delivered(): void {}

  cancel(): void {}

  /** Makes a look when its token has a lane free; without tokens all callers are one. */
  #inLane<T>(owner: string | null, look: () => Promise<T>): Promise<T> {
    if (owner === null) return look();
    let lanes = this.#lanes.get(owner);
    if (lanes === undefined) this.#lanes.set(owner, (lanes = new Lanes(this.#looksPerToken)));
    return lanes.run(look);
  }

  *#all(): Iterable<WaiterGroup> {
    for (const groups of this.#groups.values()) yield* groups.values();
  }

  #of(queue: string): Iterable<WaiterGroup> {
    return this.#groups.get(queue)?.values() ?? [];
  }

  #groupOf(ask: Ask): WaiterGroup {
    const { queue, names, versions, owner } = ask;
    const definitions = names.map((name, index) => `${name}@${versions[index]}`).toSorted();
    const served = [owner ?? "", ...definitions].join();
    let groups = this.#groups.get(queue);
    if (groups === undefined) this.#groups.set(queue, (groups = new Map()));
    let group = groups.get(served);
    if (group === undefined) groups.set(served, (group = this.#makeGroup(ask, served)));
    return group;
  }

  #makeGroup({ queue, names, versions }: Ask, served: string): WaiterGroup {
    const forget = (): void => {
      if (!group.isEmpty) return;
      const groups = this.#groups.get(queue);
      groups?.delete(served);
      if (groups?.size === 0) this.#groups.delete(queue);
    };
    let timer: NodeJS.Timeout | undefined;
    const host = {
      store: this.#store,
      logger: this.#logger,
      letGo: (of: string, runs: Found["runs"], claimId: string) => this.letGo(of, runs, claimId),
      onEmpty: () => {
        clearTimeout(timer);
        timer = setTimeout(forget, forgetMs);
        timer.unref();
      },
    };
    const group = new WaiterGroup(host, { names, versions });
    return group;
  }
}
