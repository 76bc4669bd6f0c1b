/**
 * The SQL of the schema. `scripts/generate.js` makes the module from `store/postgres/schema`.
 */

/** The text of each SQL file by its path, such as `functions/claim/claim.sql`, sorted by path. */
export declare const sqlFiles: Readonly<Record<string, string>>;
