/**
 * `npm run test:dashboard [files]`: the dashboard in a real Chromium, which it installs first if the machine
 * has none. Where it cannot be had, nothing is tested, and that is said; on CI it is a failure.
 */

import { spawnSync } from "node:child_process";
import { findBrowser } from "./browser.js";

const browser = findBrowser();
if (browser === null) {
  console.log(
    "The tests of the dashboard are skipped: there is no Chromium, and neither npm nor apt-get could install one. " +
      "Install it (apt-get install chromium), or give its path in PAWL_TEST_BROWSER.",
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
