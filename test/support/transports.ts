/**
 * The laws that are not those of the HTTP transport, with the reason for each: whole files, or single tests by their name. All others
 * hold for both transports, and are run for both.
 */

const sql = "runs SQL of the user in a transaction of the database, which a server has no part in";
const database = "is about the database itself: its schema, its URL, its connections";

/** By file. */
export const filesApart: Readonly<Record<string, string>> = {
  "migrate.test.ts": database,
  "transaction.test.ts": sql,
  "transaction-context.test.ts": sql,
  "transaction-outage.test.ts": sql,
  "within.test.ts": sql,
  "within-sql.test.ts": sql,
  "within-transactions.test.ts": sql,
};

/** By file, then by the name of the test. */
export const testsApart: Readonly<Record<string, Readonly<Record<string, string>>>> = {};
