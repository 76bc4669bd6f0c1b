/**
 * `npm run soak -- --minutes 60 [--seed n]`: random faults under load for so long, then a report. The work is `soak.test.ts`, which needs
 * the surroundings of a test.
 */

import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { minutes: { type: "string" }, seed: { type: "string" } } });
const minutes = Number(values.minutes ?? "60");
if (!(minutes > 0)) throw new Error(`--minutes takes a number above 0, not ${values.minutes}`);

const { status } = spawnSync(
  "npx",
  ["vitest", "run", "--config", "vitest.built.config.ts", "--project", "soak"],
  {
    stdio: "inherit",
    env: { ...process.env, PAWL_SOAK_MINUTES: String(minutes), PAWL_SEED: values.seed ?? "" },
  },
);
process.exitCode = status ?? 1;
