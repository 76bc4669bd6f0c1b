/**
 * The client of the fault tests: starts runs of every shape and signals them, through whatever happens, and keeps a history of
 * what it was told. An answer that did not come is unknown: the same thing is sent again, under the same key, until it is known.
 */

import { type AnyDefinition, connect, type Pawl, RunEnded, RunNotFound, Unavailable } from "pawl";
import { linear } from "../programs/definitions.js";
import type { Chance } from "./seed.js";
import { fan, gather, nap, pinned, round, transfer, turn } from "../programs/shapes.js";

/** One start that was acknowledged. */
export interface Acknowledged {
  readonly key: string;
  readonly runId: string;
  readonly definition: AnyDefinition;
  /** What its result must be (`gather`: in any order); undefined: only that there is one. */
  readonly expected: unknown;
}

export interface History {
  readonly started: Acknowledged[];
  /** How often an answer did not come, so that the same was sent again. */
  unknown: number;
  /** Signals that were acknowledged, and how many of those were repetitions. */
  signals: number;
  repetitions: number;
}

const patienceMs = 120_000;
const width = 3;

export class Load {
  readonly history: History = { started: [], unknown: 0, signals: 0, repetitions: 0 };
  /** The database may lose what it has acknowledged. */
  mayLose = false;
  readonly #pawl: Pawl;
  readonly #chance: Chance;
  /** Tells the keys of this load from those of another on the same database. */
  readonly #name: string;
  #count = 0;

  constructor(url: string, chance: Chance, name = "load") {
    this.#pawl = connect(url);
    this.#chance = chance;
    this.#name = name;
  }

  async close(): Promise<void> {
    await this.#pawl.close();
  }

  /** Starts so many runs, a few at a time, and sends the signals that they wait for. */
  async start(count: number, atATime = 20): Promise<void> {
    let left = count;
    const caller = async (): Promise<void> => {
      while (left-- > 0) await this.one();
    };
    await Promise.all(Array.from({ length: atATime }, caller));
  }

  /** Starts runs, a few at a time, for as long as this takes. */
  async during(work: Promise<unknown>, atATime = 8, pauseMs = 20): Promise<void> {
    let isOver = false;
    const caller = async (): Promise<void> => {
      while (!isOver) {
        await this.one();
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    };
    const callers = Promise.all(Array.from({ length: atATime }, caller));
    await work.finally(() => (isOver = true));
    await callers;
  }

  /** Starts one run of some shape; resolves when everything about it is acknowledged. */
  async one(): Promise<void> {
    const n = this.#count++;
    const chance = this.#chance;
    switch (n % 8) {
      case 0:
        return this.#start(n, linear, { path: [] }, ["start", "second", "third", "fourth", "last"]);
      case 1:
        return this.#start(n, round, { rounds: 8 }, [0, 1, 2, 3, 4, 5, 6, 7]);
      case 2: {
        const ms = 50 + chance.below(400);
        return this.#start(n, nap, { ms }, ms);
      }
      case 3:
        return this.#gather(n, 1 + chance.below(6));
      case 4:
        return this.#start(n, fan, { width, depth: 1 }, expectedFan(1));
      case 5: {
        const parts = [n + 1, n + 2];
        return this.#start(n, transfer, { n }, { paid: n, parts, walked: 5, news: null });
      }
      case 6: {
        const key = `key-${chance.below(4)}`;
        return this.#start(n, turn, { key }, undefined, { partitionKey: key });
      }
      default: {
        const definition = chance.pick(pinned);
        return this.#start(n, definition, {}, definition.version);
      }
    }
  }

  async #start(
    n: number,
    definition: AnyDefinition,
    input: object,
    expected: unknown,
    options: { partitionKey?: string } = {},
  ): Promise<void> {
    const key = `${this.#name}-${n}`;
    const { runId } = await this.#known(() =>
      this.#pawl.start(definition, input as never, { ...options, idempotencyKey: key }),
    );
    this.history.started.push({ key, runId, definition, expected });
  }

  /** A run that waits for signals: each is sent once to three times, from several callers, in any order. */
  async #gather(n: number, want: number): Promise<void> {
    const items = Array.from({ length: want }, (_, item) => item);
    await this.#start(n, gather, { want }, items);
    const { runId } = this.history.started.findLast(({ key }) => key === `${this.#name}-${n}`)!;
    const sends = items.flatMap((item) => Array.from({ length: 1 + this.#chance.below(3) }, () => item));
    await Promise.all(sends.map((item) => this.#signal(runId, item)));
  }

  async #signal(runId: string, item: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.#chance.below(300)));
    try {
      const send = () => this.#pawl.signal(runId, "item", { n: item }, { dedupKey: `item-${item}` });
      const { delivered } = await this.#known(send);
      this.history.signals++;
      if (!delivered) this.history.repetitions++;
    } catch (error) {
      if (error instanceof RunNotFound && this.mayLose) return;
      // It ends when it has all of them: this one came before, by another caller or an answer that was lost.
      if (!(error instanceof RunEnded)) throw error;
      this.history.repetitions++;
    }
  }

  /** Until the answer is known. */
  async #known<T>(call: () => Promise<T>): Promise<T> {
    const endMs = Date.now() + patienceMs;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof Unavailable) || Date.now() > endMs) throw error;
        this.history.unknown++;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
}

function expectedFan(depth: number): unknown[] {
  return Array.from({ length: width }, (_, n) => [
    "completed",
    depth > 0 && n === 0 ? expectedFan(depth - 1) : n * 2,
  ]);
}
