/**
 * The laws that are not those of the HTTP transport, with the reason for each: whole files, or single tests by their name. All others
 * hold for both transports, and are run for both.
 */

const sql = "runs SQL of the user in a transaction of the database, which a server has no part in";
const database = "is about the database itself: its schema, its URL, its connections";

const counted =
  "what a client does through a server is told and counted there (see test/server/metrics.test.ts)";

/** By file, as a path from `test/laws`. */
export const filesApart: Readonly<Record<string, string>> = {
  "databases/connections.test.ts": database,
  "databases/least-privilege.test.ts": database,
  "databases/migrate.test.ts": database,
  "workers/run-until-idle.test.ts": database,
  "transactions/transaction.test.ts": sql,
  "transactions/transaction-context.test.ts": sql,
  "transactions/transaction-ended.test.ts": sql,
  "transactions/transaction-outage.test.ts": sql,
  "transactions/transaction-refusals.test.ts": sql,
  "transactions/transaction-silence.test.ts": sql,
  "transactions/within.test.ts": sql,
  "transactions/within-sql.test.ts": sql,
  "transactions/within-transactions.test.ts": sql,
};

/** By file, then by the name of the test. */
export const testsApart: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "cancel-cascade.test.ts": {
    "aborts every running step of the tree, and whoever waits for one of them hears":
      "at once is only possible where the ids of all cancelled runs are known; through a server the next beat brings them (see test/server)",
  },
  "clients/events.test.ts": {
    "tell the life of a job in order: start, claim, retry, end": counted,
    "tell every step of a machine, its signals, its children and its failure by its code": counted,
    "tell of cancelled runs, with the definition of each": counted,
    "tell of claims, empty looks and flushes, and of runs put off by their limit": counted,
  },
  "clients/metrics.test.ts": {
    "count starts, ends, steps, retries and signals by definition": counted,
    "have a bounded number of series, however many names users make up": counted,
    "are served on a port of their own, with what the database knows if that is asked for":
      "a worker behind a server does not see the database; the server shows what that knows",
  },
  "workflows/workflow-timeline.test.ts": {
    "is not completed over a transaction that is lost: that is done again": sql,
    "is not recorded by a transaction that was open meanwhile: that is rolled back and done again": sql,
    "the claims of jobs and machines outlive a failover: their turn tells whether anything is missing": sql,
  },
  "workers/worker.test.ts": {
    "a run started where a worker has a free slot never waits for a claim":
      "is about a worker in the process of the caller, to whom the start hands the run; a server hands it to a claim that waits",
  },
  "retention.test.ts": {
    "false never sweeps; a worker that has one sweeps what has expired, and only that":
      "the server sweeps, by an option of its own (see test/server)",
  },
};
