/**
 * `npm run test:pgbouncer [-- --quick] [files]`: the laws of the library through PgBouncer in transaction mode; with --quick those that depend on
 * sessions, transactions and connections most. Where it is not installed and cannot be, nothing is tested, and that is said.
 */

import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { findPooler } from "../support/proxies/pooler.js";

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean" } },
  allowPositionals: true,
});
const quick = [
  "transactions/transaction-",
  "transactions/within",
  "databases/migrate",
  "workers/worker",
  "workers/stop",
  "workflows/workflow-timeline",
];
const files = values.quick === true ? quick.map((name) => `test/laws/${name}`) : positionals;

if (findPooler() === null) {
  console.log(
    "The tests through PgBouncer are skipped: it is not installed, and only root can install it (apt-get install pgbouncer).",
  );
} else {
  const { status } = spawnSync(
    "npx",
    ["vitest", "run", "--config", "vitest.built.config.ts", "--project", "pgbouncer", ...files],
    {
      stdio: "inherit",
    },
  );
  process.exitCode = status ?? 1;
}
