/**
 * `fork`: copies the database at an instant, and with it every run; both sides go on from there, each by itself. The copy knows that
 * it is one: its workers warn until it is adopted. A held copy stays still until then.
 */

import { InvalidOption } from "../values/errors.js";
import { checkOptions } from "../values/options.js";
import { show } from "../values/show.js";
import type { DatabaseOptions } from "./hold.js";
import { atDatabase } from "./locate.js";
import { copyDatabase } from "../store/postgres/fork/copy-database.js";
import { withDatabase } from "../store/postgres/database.js";
import { adoptDatabase, readState, setHeld, setHeldCopy } from "../store/postgres/database-state.js";
import type { CopyMethod } from "../store/store.js";

export interface ForkOptions extends DatabaseOptions {
  /** The name of the database to be made, on the same server. */
  readonly name: string;
  /** Keep the copy still until `fork.adopt`. Default false: it goes on as soon as a worker serves it. */
  readonly held?: boolean | undefined;
}

/** A copy that was made. */
export interface Forked {
  readonly name: string;
  /** The URL of the original, its password included, with the name of the copy. */
  readonly url: string;
  readonly held: boolean;
  /** How long the original stood still: whoever connected to it meanwhile waited. */
  readonly pausedMs: number;
  /** How the server copied it. */
  readonly method: CopyMethod;
  /** Settings of the original that the copy has not, one line each. */
  readonly notes: readonly string[];
}

export interface Adopted {
  readonly wasHeld: boolean;
  readonly wasCopy: boolean;
}

interface Fork {
  /** Copies the database; the role of the URL must be allowed to create databases, and own this one. */
  (options: ForkOptions): Promise<Forked>;
  /** From now on this is a database of its own: its workers do not warn any more, and if it was held, it goes on. */
  adopt(options?: DatabaseOptions): Promise<Adopted>;
}

async function run(options: ForkOptions): Promise<Forked> {
  const given = checkOptions(options, ["url", "schema", "name", "held"], "the options of fork");
  const { held = false } = given;
  const name = checkDatabaseName(given.name);
  if (typeof held !== "boolean") throw new InvalidOption(`held must be true or false, not ${show(held)}`);
  return atDatabase(given, async (address) => {
    const copy = { url: withDatabase(address.url, name), schema: address.schema };
    try {
      const copied = await copyDatabase(address.url, name, {
        // The copy is born with this mark: it is held whatever becomes of this process.
        before: () => setHeldCopy(address, held ? name : null),
      });
      if (held) await setHeld(copy, true);
      const { isHeld } = await readState(copy);
      return { name, url: copy.url, held: isHeld, ...copied };
    } finally {
      // Left behind, it would mean nothing in the original, and the next fork would take it away.
      if (held) await setHeldCopy(address, null).catch(() => {});
    }
  });
}

/** A name that means the same in a URL and in SQL. */
function checkDatabaseName(name: unknown): string {
  if (typeof name === "string" && /^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,62}$/.test(name)) return name;
  throw new InvalidOption(
    `name must be 1 to 63 characters of a-z, A-Z, 0-9, _ and -, the first no -, not ${show(name)}`,
  );
}

export const fork: Fork = Object.assign(run, {
  adopt: async (options: DatabaseOptions = {}) =>
    atDatabase(checkOptions(options, ["url", "schema"], "the options of fork.adopt"), adoptDatabase),
});
