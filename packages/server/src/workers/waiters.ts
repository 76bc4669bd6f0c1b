/**
 * The remote workers that wait here for runs, in one group per queue, token and set of definitions
 * (`waiter-group.ts`). The hub tells it about work as if it were a worker of this process, so it
 * knows at once about every run that goes through this server. It never gives a claim to a worker
 * that has disconnected, and leaves no claim behind when the server closes. Used by the worker
 * routes.
 */

import { type Claimable, type Hub, Lanes, type LocalWorker, type PostgresStore } from "pawl/engine";
import { Forbidden, type Logger } from "pawl";
import { type Ask, type Found, type GroupHost, nothing, type Waiter, WaiterGroup } from "./waiter-group.js";

/** How long an empty group is kept: it knows where its next claim begins. */
const keepGroupMs = 5_000;

export interface WaitersOptions {
  readonly store: Pick<PostgresStore, "ownedBy" | "release">;
  readonly hub: Hub;
  readonly logger: Logger;
  /** How many claims one token may send at once: the other connections are for the other tokens. */
  readonly claimsPerToken: number;
}

export class Waiters implements LocalWorker {
  readonly #store: { claim: GroupHost["store"]["claim"]; release: PostgresStore["release"] };
  readonly #hub: Hub;
  readonly #logger: Logger;
  /** By queue, then by token and definitions: a caller delays only callers of its own token. */
  readonly #groups = new Map<string, Map<string, WaiterGroup>>();
  /** Releases in flight. */
  readonly #releases = new Set<Promise<void>>();
  /** Claims of each token, which may have many groups: one for every set of definitions. */
  readonly #lanes = new Map<string, Lanes>();
  readonly #claimsPerToken: number;
  #isClosed = false;

  constructor({ store, hub, logger, claimsPerToken }: WaitersOptions) {
    this.#claimsPerToken = claimsPerToken;
    this.#store = {
      claim: async (request) => {
        const claimed = await this.#inLane(request.owner, () => store.ownedBy(request.owner).claim(request));
        // Reported here: a worker sees the runs it gets, not the runs that the database put off.
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

  /**
   * Claims runs for a worker and waits until there are some. Returns none when the time has passed
   * or the server closes. `signal` is aborted when the worker disconnects.
   */
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

  /** Ends the wait of this claim. Throws if the claim came with another token. */
  end({ workerId, claimId, owner }: Pick<Ask, "workerId" | "claimId" | "owner">): void {
    for (const group of this.#all()) {
      group.end(({ ask }) => {
        if (ask.workerId !== workerId || ask.claimId !== claimId) return false;
        if (owner === null || ask.owner === owner) return true;
        throw new Forbidden(`the worker "${workerId}" waits with another token: end your own claims only`);
      });
    }
  }

  /** Releases claims that did not reach their worker. */
  release(queue: string, runs: Found["runs"], claimId: string): void {
    if (runs.length === 0) return;
    const claims = runs.map(({ runId }) => ({ runId, claimId }));
    const released = this.#store.release(claims).then(
      () => {
        this.rewind();
        this.#hub.hint(queue);
      },
      (error: unknown) => {
        this.#logger.warn(
          { err: error, runs: claims.length },
          "pawl: could not release claims that did not reach their worker",
        );
      },
    );
    this.#releases.add(released);
    void released.then(() => this.#releases.delete(released));
  }

  /** Answers all waiting workers at once. */
  beginClosing(): void {
    this.#isClosed = true;
    this.#hub.workers.delete(this);
    for (const group of this.#all()) group.end(() => true);
  }

  /** Resolves when all claims that did not reach their worker are released. */
  async close(): Promise<void> {
    this.beginClosing();
    while (this.#releases.size > 0) await Promise.all(this.#releases);
  }

  /** Older runs may have become claimable: the next claims begin at the head of their queues. */
  rewind(): void {
    for (const group of this.#all()) group.rewind();
  }

  hint(queue: string | null): void {
    if (queue === null) this.rewind();
    else for (const group of this.#of(queue)) group.hint();
  }

  lower(claimable: Claimable): void {
    for (const group of this.#of(claimable.queue)) group.lower(claimable);
  }

  expect(queue: string, delayMs: number): void {
    for (const group of this.#of(queue)) group.expect(delayMs);
  }

  // The server executes nothing. A remote worker learns of signals and cancellations by its
  // heartbeats.
  reserve(): null {
    return null;
  }

  offer(): null {
    return null;
  }

  delivered(): void {}

  cancel(): void {}
  overdue(): void {}

  /** Sends a claim when its token has a free lane. Without tokens there are no lanes. */
  #inLane<T>(owner: string | null, claim: () => Promise<T>): Promise<T> {
    if (owner === null) return claim();
    let lanes = this.#lanes.get(owner);
    if (lanes === undefined) this.#lanes.set(owner, (lanes = new Lanes(this.#claimsPerToken)));
    return lanes.run(claim);
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
      release: (of: string, runs: Found["runs"], claimId: string) => this.release(of, runs, claimId),
      onEmpty: () => {
        clearTimeout(timer);
        timer = setTimeout(forget, keepGroupMs);
        timer.unref();
      },
    };
    const group = new WaiterGroup(host, { names, versions });
    return group;
  }
}
