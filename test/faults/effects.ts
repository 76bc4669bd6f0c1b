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
