/**
 * `hold`: workers execute nothing in a held database until it is released. For example, hold a
 * restored backup before workers connect to it. New runs and signals are stored and wait.
 * `databaseState` says whether a database is held, and whether it is a copy.
 */

import { currentActor } from "../operate/actor.js";
import { checkOptions } from "../values/options.js";
import { atDatabase } from "./locate.js";
import { readState, setHeld } from "../store/postgres/database-state.js";
import type { DatabaseState } from "../store/store.js";

export interface DatabaseOptions {
  /** Default: as for `connect`. */
  readonly url?: string | undefined;
  /** The schema of Pawl in the database. Default "pawl". */
  readonly schema?: string | undefined;
}

interface Hold {
  /**
   * Holds the database. Running steps finish, and no new step starts. `changed`: it was not held
   * before.
   */
  (options?: DatabaseOptions): Promise<{ changed: boolean }>;
  /** Releases the database. If it is a copy, its workers still warn: see `fork.adopt`. */
  release(options?: DatabaseOptions): Promise<{ changed: boolean }>;
}

const names = ["url", "schema"] as const;

export const hold: Hold = Object.assign(
  async (options: DatabaseOptions = {}) => {
    const given = checkOptions(options, names, "the options of hold");
    return { changed: await atDatabase(given, (address) => setHeld(address, true, currentActor())) };
  },
  {
    release: async (options: DatabaseOptions = {}) => {
      const given = checkOptions(options, names, "the options of hold.release");
      return { changed: await atDatabase(given, (address) => setHeld(address, false, currentActor())) };
    },
  },
);

/** Whether a database is held, and whether it is a copy: a fork or a restored backup. */
export async function databaseState(options: DatabaseOptions = {}): Promise<DatabaseState> {
  return atDatabase(checkOptions(options, names, "the options of databaseState"), readState);
}
