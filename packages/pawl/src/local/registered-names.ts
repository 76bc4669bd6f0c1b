/**
 * Finds starts by a name that no worker has ever registered, perhaps a typo. Names are never
 * unregistered, so the database is asked about a name until it is registered, and then no more. A
 * failed question says nothing, and the start counts all the same. Used by the starter, after the
 * start.
 */

import type { ClientStore, NewRun } from "../store/store.js";
import { nearest } from "../values/options.js";

/** How many names one call asks about; others are not checked. */
const maxAsked = 100;
const maxKept = 10_000;

/** Of an unregistered name: the registered name that was perhaps meant. */
interface Missing {
  readonly nearest: string | null;
}

export class RegisteredNames {
  readonly #store: Pick<ClientStore, "unregistered">;
  readonly #known = new Set<string>();
  /** The questions under way, by name: starts that come together ask once. */
  readonly #asked = new Map<string, Promise<ReadonlyMap<string, Missing>>>();

  constructor(store: Pick<ClientStore, "unregistered">) {
    this.#store = store;
  }

  /** Whether there is nothing to ask: the run has a definition, or its name is registered. */
  isKnown({ name, kind }: Pick<NewRun, "name" | "kind">): boolean {
    return kind !== null || this.#known.has(name);
  }

  /** Undefined: the name is registered, or nobody knows. Never rejects. */
  async ask(name: string): Promise<Missing | undefined> {
    let asked = this.#asked.get(name);
    if (asked === undefined) {
      asked = this.missing([{ name, kind: null }]).finally(() => this.#asked.delete(name));
      this.#asked.set(name, asked);
    }
    return (await asked).get(name);
  }

  /** The names among these starts that nobody has registered. Never rejects. */
  async missing(runs: readonly Pick<NewRun, "name" | "kind">[]): Promise<ReadonlyMap<string, Missing>> {
    const names = new Set(runs.filter((run) => !this.isKnown(run)).map(({ name }) => name));
    const asked = [...names].slice(0, maxAsked);
    try {
      const found = await this.#store.unregistered(asked);
      const missing = new Map(
        found.map(({ name, known }) => [name, { nearest: nearest(name, known) ?? null }]),
      );
      if (this.#known.size > maxKept) this.#known.clear();
      for (const name of asked) if (!missing.has(name)) this.#known.add(name);
      return missing;
    } catch {
      return new Map();
    }
  }
}
