/** Facts about a database as a whole, and the answers of `migrate` and `fork`. Types only. */

export interface MigrationResult {
  readonly schema: string;
  readonly from: number;
  readonly to: number;
  /** One line per change, empty if there was nothing to do. */
  readonly steps: readonly string[];
}

export interface DatabaseState {
  /** The same in a database and its copies, until one of them is adopted. */
  readonly identity: string;
  /** No worker claims anything until the database is released or adopted. */
  readonly isHeld: boolean;
  /** The database was migrated or last adopted elsewhere: it is a fork or a restored backup. */
  readonly isCopy: boolean;
}

/**
 * How PostgreSQL copies a database: block by block through the log, file by file, or by a clone of
 * the file system.
 */
export type CopyMethod = "wal_log" | "file_copy" | "clone";
