import { defineConfig } from "vitest/config";
import { filesApart } from "./test/support/setup/transports.js";

// Tests run against the built packages (`tsc -b` first, as `npm test` does), the way a user loads them.
// The laws once more through a pooler are `npm run test:pgbouncer`, a part of them in `npm test`.
// The fault tests are a project of their own, run after the others: they start and kill many processes. `npm test` runs the part
// of them that is quick (`*.quick.test.ts`), `npm run test:faults` all but the longest (`*.long.test.ts`, `npm run test:faults:long`), `npm run soak` random ones for as long as it is told.
const shared = {
  globalSetup: ["test/support/setup/global-setup.ts"],
  setupFiles: ["test/support/setup/loopback-only.ts"],
  pool: "forks" as const,
  testTimeout: 30_000,
  hookTimeout: 60_000,
  // Whatever is logged while a file is being left goes straight out: sent to the runner, it would fail the whole run.
  disableConsoleIntercept: true,
};

// Between them they call every function of the schema that clients, workers and the server call.
const grantedFiles = [
  "test/laws/**/{job,machine,signals,children,cancel,keys,limits,queues,topics,why,retention,worker,query}.test.ts",
  "test/laws/**/{workflow,workflow-events,workflow-invoke,transaction,within}.test.ts",
  "test/server/**/{runs,deliveries,worker-protocol}.test.ts",
  "test/store/**/{scheduling,record}.test.ts",
];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: "laws",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: ["**/dist/**", "**/node_modules/**", "test/faults/**", "test/soak/**"],
        },
      },
      {
        // The same laws through a server. What is told apart, and why, is in `test/support/setup/transports.ts`.
        test: {
          ...shared,
          name: "http",
          include: ["test/laws/**/*.test.ts"],
          exclude: ["**/dist/**", ...Object.keys(filesApart).map((file) => `test/laws/**/${file}`)],
          env: { PAWL_TEST_TRANSPORT: "http" },
          setupFiles: [...shared.setupFiles, "test/support/setup/over-http.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "pgbouncer",
          include: ["test/laws/**/*.test.ts"],
          exclude: ["**/dist/**"],
        },
      },
      {
        // A part of the laws once more by a role that owns nothing and has what `migrate({ grant })` gives.
        test: {
          ...shared,
          name: "granted",
          include: grantedFiles,
        },
      },
      {
        test: {
          ...shared,
          name: "quick-faults",
          include: ["test/faults/**/*.quick.test.ts"],
          exclude: ["**/dist/**"],
        },
      },
      {
        test: {
          ...shared,
          name: "soak",
          include: ["test/soak/*.test.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          // The quick restarts are part of the many.
          exclude: ["**/dist/**", "**/*.long.test.ts", "**/restart.quick.test.ts"],
        },
      },
      { test: { ...shared, name: "long-faults", include: ["test/faults/**/*.long.test.ts"] } },
    ],
  },
});
