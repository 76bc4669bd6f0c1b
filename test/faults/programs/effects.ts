/**
 * What steps do to the world, in the fault tests: rows in a ledger on another Postgres server, which no crash, rollback or
 * failover of the first can take back. Used by the definitions, in worker processes.
 */

import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env["LEDGER_URL"], max: 2, allowExitOnIdle: true });
pool.on("error", () => {});

/** Says that a step is entered. */
export async function tell(runId: string, step: string, attempt: number, version = 1): Promise<void> {
  await pool.query("insert into ledger (run_id, step, attempt, version, pid) values ($1, $2, $3, $4, $5)", [
    runId,
    step,
    attempt,
    version,
    process.pid,
  ]);
}

export const pause = (): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 10));

const slowPool = new pg.Pool({
  connectionString: process.env["LEDGER_URL"],
  max: 45,
  idleTimeoutMillis: 1_000,
  allowExitOnIdle: true,
});
slowPool.on("error", () => {});

/** Waits for an answer of the ledger's server that takes so long. */
export async function ledgerSleep(ms: number): Promise<void> {
  await slowPool.query("select pg_sleep($1)", [ms / 1_000]);
}

/** How often something was told of this run. */
export async function told(runId: string): Promise<number> {
  const { rows } = await pool.query("select count(*)::int as n from ledger where run_id = $1", [runId]);
  return (rows[0] as { n: number }).n;
}
