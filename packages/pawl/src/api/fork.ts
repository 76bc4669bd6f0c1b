/**
 * `fork`: copies a database with all its runs. Both sides continue from there independently.
 * Workers of the copy warn until it is adopted. In a held copy no worker executes anything until
 * then.
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
  /** The name of the new database, on the same server. */
  readonly name: string;
  /**
   * Hold the copy until `fork.adopt`. Default false: its runs continue as soon as a worker serves
   * them.
   */
  readonly held?: boolean | undefined;
}

/** The copy that `fork` made. */
export interface Forked {
  readonly name: string;
  /** The URL of the original, its password included, with the name of the copy. */
  readonly url: string;
  readonly held: boolean;
  /** How long new connections to the original had to wait. */
  readonly pausedMs: number;
  /** How PostgreSQL copied it. */
  readonly method: CopyMethod;
  /** Settings of the original that the copy lacks, one line each. */
  readonly notes: readonly string[];
}

export interface Adopted {
  readonly wasHeld: boolean;
  readonly wasCopy: boolean;
}

interface Fork {
  /** Copies the database. The role of the URL must own it and be allowed to create databases. */
  (options: ForkOptions): Promise<Forked>;
  /** Makes a copy independent: its workers stop warning, and if it was held, it is released. */
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
        // The copy contains this mark, so it is held even if this process dies.
        before: () => setHeldCopy(address, held ? name : null),
      });
      if (held) await setHeld(copy, true);
      const { isHeld } = await readState(copy);
      return { name, url: copy.url, held: isHeld, ...copied };
    } finally {
      // The mark means nothing in the original, and the next fork would remove it.
      if (held) await setHeldCopy(address, null).catch(() => {});
    }
  });
}

/** A name that means the same in a URL and in SQL. */
function checkDatabaseName(name: unknown): string {
  if (typeof name === "string" && /^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,62}$/.test(name)) return name;
  throw new InvalidOption(
    `name must be 1 to 63 characters of a-z, A-Z, 0-9, _ and -, and not begin with -, not ${show(name)}`,
  );
}

export const fork: Fork = Object.assign(run, {
  adopt: async (options: DatabaseOptions = {}) =>
    atDatabase(checkOptions(options, ["url", "schema"], "the options of fork.adopt"), adoptDatabase),
});
