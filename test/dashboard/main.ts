/**
 * `npm run test:dashboard [files]`: the dashboard in a real Chromium, which is installed first if it is missing
 * and this process may. Where it cannot be had, nothing is tested, and that is said; on CI it is a failure.
 */

import { spawnSync } from "node:child_process";
import { findBrowser } from "./browser.js";

const browser = findBrowser();
if (browser === null) {
  console.log(
    "The tests of the dashboard are skipped: there is no Chromium, and only root can install it (apt-get install chromium). " +
      "PAWL_TEST_BROWSER can name another one.",
  );
  if (process.env["CI"] !== undefined) process.exitCode = 1;
} else {
  const { status } = spawnSync(
    "npx",
    [
      "vitest",
      "run",
      "--config",
      "vitest.built.config.ts",
      "--maxWorkers",
      "2",
      "--project",
      "dashboard",
      ...process.argv.slice(2),
    ],
    { stdio: "inherit", env: { ...process.env, PAWL_TEST_BROWSER: browser } },
  );
  process.exitCode = status ?? 1;
}
