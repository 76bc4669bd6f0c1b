import { defineConfig } from "vitest/config";
import { filesApart } from "./test/support/setup/transports.js";
import { laws, shared } from "./vitest.config.js";

// All projects, on the built packages: the way users load them. `npm test` builds, then runs the laws
// and the quick faults from here. The scripts of package.json name the project that they run.
// PgBouncer: `npm run test:pgbouncer` runs the laws through a pooler; `npm test` runs a part of that.
// Faults: `npm test` runs `*.quick.test.ts`, `npm run test:faults` all but `*.long.test.ts`, and
// `npm run test:faults:long` those. `npm run soak` injects random faults for as long as you say.
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
      { test: laws },
      {
        // The same laws through a server. What is told apart, and why, is in `test/support/setup/transports.ts`.
        test: {
          ...shared,
          name: "http",
          include: ["test/laws/**/*.test.ts"],
          exclude: ["**/dist/**", ...Object.keys(filesApart).map((file) => `test/laws/${file}`)],
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
        // In Chromium, which `test/dashboard/main.ts` finds or installs before.
        test: {
          ...shared,
          name: "dashboard",
          include: ["test/dashboard/**/*.test.ts"],
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
        // In projects that npm installs from its registry: `npm run test:runtimes`.
        test: {
          ...shared,
          name: "runtimes",
          include: ["test/runtimes/**/*.test.ts"],
          exclude: ["**/dist/**"],
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
      {
        // What users install: `npm run release:check`.
        test: {
          name: "release",
          include: ["test/release/*.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
      { test: { ...shared, name: "long-faults", include: ["test/faults/**/*.long.test.ts"] } },
    ],
  },
});
