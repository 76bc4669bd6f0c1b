import { defineConfig } from "vitest/config";
import { generate } from "./packages/pawl/scripts/generate.js";
import { fromSource } from "./test/support/setup/from-source.js";

// The SQL and the heartbeat thread, as they are now.
generate();

// While you work: all tests but the faults and the browser, from source, without a build. `npm test` runs them, and
// the projects of `vitest.built.config.ts`, on the built packages.
export const shared = {
  globalSetup: ["test/support/setup/global-setup.ts"],
  setupFiles: ["test/support/setup/loopback-only.ts", "test/support/setup/debug.ts"],
  pool: "forks" as const,
  // The limits end a test that hangs. They say nothing about speed: other work on the machine is no failure.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Output while a file ends goes straight to the terminal. Sent to the runner, it would fail the run.
  disableConsoleIntercept: true,
};

export const laws = {
  ...shared,
  name: "laws",
  include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
  exclude: [
    "**/dist/**",
    "**/node_modules/**",
    "test/faults/**",
    "test/soak/**",
    "test/dashboard/**",
    "test/runtimes/installed/**",
    "test/release/**",
  ],
};

export default defineConfig({ plugins: [fromSource()], test: laws });
