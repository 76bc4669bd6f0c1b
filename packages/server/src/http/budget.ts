/**
 * What callers may have under way at once: runs that they wait for, bytes of bodies. Each caller has a share, and there is a bound for
 * all of them together, so that nobody takes what the others need. Beyond its share a caller is answered 429, beyond what there is in
 * all 503, both before anything was done and with `retry-after`. One that has nothing under way gets through whatever it asks for.
 */

import type { FastifyRequest } from "fastify";
import { RequestError } from "./problems.js";

/** Whose share a request is counted to: that of its token, of what a proxy has let through, or of everybody on this machine. */
export function shareOf({ caller, headers }: FastifyRequest): string {
  return caller.tokenName ?? headers.authorization ?? "";
}

export interface BudgetOptions {
  readonly perCaller: number;
  readonly inAll: number;
  /** What is counted, for the message: "bytes of request bodies". */
  readonly what: string;
  /** What the caller can do about it. */
  readonly advice: string;
}

/** What one request has taken. `end` must be called once it is over. */
export interface Share {
  /** Takes more, or throws. */
  grow(amount: number): void;
  end(): void;
}

export class Budget {
  readonly #options: BudgetOptions;
  readonly #taken = new Map<string, number>();
  #inAll = 0;

  constructor(options: BudgetOptions) {
    this.#options = options;
  }

  /** Takes this much for a request of this caller, or throws what to answer. */
  take(caller: string, amount: number): Share {
    let held = 0;
    const share: Share = {
      grow: (more) => {
        this.#check(caller, more, held);
        this.#add(caller, more);
        held += more;
      },
      end: () => {
        this.#add(caller, -held);
        held = 0;
      },
    };
    share.grow(amount);
    return share;
  }

  #check(caller: string, more: number, held: number): void {
    const { perCaller, inAll, what, advice } = this.#options;
    const taken = this.#taken.get(caller) ?? 0;
    // What a request has taken itself does not stand in its own way.
    if (taken > held && taken + more > perCaller) {
      const detail = `this caller has ${taken} ${what} under way, and with ${more} more it would be over its share of ${perCaller}; ${advice}`;
      throw new RequestError(429, "TooManyRequests", detail);
    }
    if (this.#inAll > held && this.#inAll + more > inAll) {
      const detail = `all callers together have ${this.#inAll} ${what} under way, and ${more} more would be over ${inAll}; ask again a little later`;
      throw new RequestError(503, "Overloaded", detail);
    }
  }

  #add(caller: string, amount: number): void {
    this.#inAll += amount;
    const taken = (this.#taken.get(caller) ?? 0) + amount;
    if (taken === 0) this.#taken.delete(caller);
    else this.#taken.set(caller, taken);
  }
}
