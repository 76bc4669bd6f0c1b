/**
 * The outside world of the demo: a warehouse, a payment provider and a carrier. It counts requests
 * and returns the same answer for the same key, as a good payment provider does. It never answers
 * the first charge: the demo kills the worker that waits for it.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Pawl } from "pawl";
import type { Request } from "./outside.js";

/** How long it takes to answer: slow enough to read along. */
const answerMs = 400;

/** The steps of the order, and the result of each. */
const goods = { reserve: "reservation", charge: "payment", pack: "parcel", ship: "tracking" };

export class OutsideWorld {
  /** Resolves when the money is taken and the step waits for the answer. */
  readonly moneyTaken: Promise<void>;
  /** Called when an interrupted step is executed again. */
  onRecovery = (): void => {};
  readonly #pawl: Pawl;
  readonly #say: (line: string) => void;
  readonly #asked: { readonly step: string; readonly worker: string }[] = [];
  /** The answers by key. */
  readonly #given = new Map<string, string>();
  #tellMoneyTaken = (): void => {};

  constructor(pawl: Pawl, say: (line: string) => void) {
    this.#pawl = pawl;
    this.#say = say;
    this.moneyTaken = new Promise((resolve) => {
      this.#tellMoneyTaken = resolve;
    });
  }

  /** Answers a step; null for the one that does not live long enough to hear it. */
  async answer(worker: string, { key, runId, step, attempt }: Request): Promise<string | null> {
    this.#asked.push({ step, worker });
    if (attempt > 0) this.onRecovery();
    const { state } = await this.#pawl.runs.get(runId);
    const committed = Object.values(goods).filter((good) => JSON.stringify(state).includes(`"${good}"`));
    const before = committed.length === 0 ? "nothing yet" : committed.join(", ");
    this.#say(`   worker ${worker}  executes ${step.padEnd(8)} attempt ${attempt}   committed: ${before}`);
    const isRepeated = this.#given.has(key);
    const answer = this.#given.get(key) ?? `${goods[step]}-${100 + this.#given.size}`;
    this.#given.set(key, answer);
    if (step === "charge") {
      this.#say(
        `             the payment provider ${isRepeated ? "knows this key and takes nothing" : "takes 25 EUR"}`,
      );
    }
    await sleep(answerMs);
    if (step !== "charge" || isRepeated) return answer;
    this.#tellMoneyTaken();
    return null;
  }

  /** How often a worker has executed a step. */
  count(step: string, worker: string): number {
    return this.#asked.filter((asked) => asked.step === step && asked.worker === worker).length;
  }

  /** How often money was taken: once per key. */
  get payments(): number {
    return [...this.#given.keys()].filter((key) => key.endsWith("/charge")).length;
  }
}
