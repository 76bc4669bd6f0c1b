/**
 * `hold`: keeps a database still, such as a restored backup before workers connect to it. Nothing in it is executed until it is released;
 * runs are started and signals delivered, and wait. And `databaseState`: whether a database is held, or a copy.
 */

import { checkOptions } from "../values/options.js";
import { atDatabase } from "./locate.js";
import { readState, setHeld } from "../store/postgres/database-state.js";
import type { DatabaseState } from "../store/store.js";

export interface DatabaseOptions {
  /** Found as by `connect`. */
  readonly url?: string | undefined;
  /** The schema of Pawl in the database. Default "pawl". */
  readonly schema?: string | undefined;
}

interface Hold {
  /** Keeps the database still. Steps that are being executed end, and no other begins. Answers whether it was not held before. */
  (options?: DatabaseOptions): Promise<{ changed: boolean }>;
  /** Lets it go on. If it is a copy, workers go on warning: see `fork.adopt`. */
  release(options?: DatabaseOptions): Promise<{ changed: boolean }>;
}

const names = ["url", "schema"] as const;

export const hold: Hold = Object.assign(
  async (options: DatabaseOptions = {}) => {
    const given = checkOptions(options, names, "the options of hold");
    return { changed: await atDatabase(given, (address) => setHeld(address, true)) };
  },
  {
    release: async (options: DatabaseOptions = {}) => {
      const given = checkOptions(options, names, "the options of hold.release");
      return { changed: await atDatabase(given, (address) => setHeld(address, false)) };
    },
  },
);

/** Whether a database is held, and whether it is a copy: a fork, or a restored backup. */
export async function databaseState(options: DatabaseOptions = {}): Promise<DatabaseState> {
  return atDatabase(checkOptions(options, names, "the options of databaseState"), readState);
}
