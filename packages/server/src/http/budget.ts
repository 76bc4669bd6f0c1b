/**
 * Limits what callers use at once: waits for runs, bytes of bodies. Each caller has a share, and
 * there is a limit for all callers together. A caller over its share gets 429; over the common
 * limit it gets 503. Both come before anything was done, with `retry-after`. A caller that uses
 * nothing yet always gets through, whatever it asks for.
 */

import type { FastifyRequest } from "fastify";
import { RequestError } from "./problems.js";

/**
 * The share that a request counts to: of its token, of its authorization header behind a proxy, or
 * of all local callers.
 */
export function shareOf({ caller, headers }: FastifyRequest): string {
  return caller.tokenName ?? headers.authorization ?? "";
}

export interface BudgetOptions {
  readonly perCaller: number;
  readonly inAll: number;
  /** The unit, for messages: "bytes of request bodies". */
  readonly what: string;
  /** Advice for the caller. */
  readonly advice: string;
}

/** The part that one request uses. Call `end` when the request is over. */
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

  /** Takes this much for a request of this caller, or throws `RequestError`. */
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
    // A request does not count against itself.
    if (taken > held && taken + more > perCaller) {
      const detail = `this caller uses ${taken} ${what}, and ${more} more would exceed its share of ${perCaller}; ${advice}`;
      throw new RequestError(429, "TooManyRequests", detail);
    }
    if (this.#inAll > held && this.#inAll + more > inAll) {
      const detail = `all callers together use ${this.#inAll} ${what}, and ${more} more would exceed the limit of ${inAll}; retry a little later`;
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
