/** Who keeps a server alive, and what is left when nobody does. */
import { existsSync, readdirSync } from "node:fs";
import { dirname } from "node:path";
import { expect, it } from "vitest";
import { startLocalPostgres } from "../dist/index.js";
import { isGone, isRunning, parentOf, processesMentioning, query, runtimeDirectoryOf } from "./observe.js";
import { stopAtEnd, temporaryDirectory, until } from "./observe.js";
import { UserProcess } from "./user-process.js";

it.concurrent("a throw-away server runs durably in UTF-8 and UTC, and stop() leaves nothing behind", async () => {
  const server = await startLocalPostgres();
  const rows = await query(
    server.url,
    `select current_database(), current_setting('fsync'), current_setting('server_encoding'),
            current_setting('TimeZone'), current_setting('max_wal_size'), current_setting('listen_addresses')`,
  );
  expect(rows).toEqual([["pawl", "on", "UTF8", "UTC", "4GB", ""]]);
  const supervisor = parentOf(server.pid);
  await server.stop();
  expect(isGone(server)).toBe(true);
  await until("the supervisor ends", () => !isRunning(supervisor));
  await until("its watcher ends", () => processesMentioning(runtimeDirectoryOf(server.url)).length === 0);
  await server.stop(); // a second time is harmless
});

it.concurrent("several servers run at once, each with its own data", async () => {
  const servers = await Promise.all([
    startLocalPostgres(),
    startLocalPostgres(),
    startLocalPostgres({ port: "free" }),
  ]);
  servers.forEach(stopAtEnd);
  expect(new Set(servers.map((server) => server.directory)).size).toBe(3);
  await Promise.all(servers.map((server, number) => query(server.url, `create table only_${number} ()`)));
  for (const [number, server] of servers.entries()) {
    const rows = await query(server.url, "select tablename from pg_tables where tablename like 'only%'");
    expect(rows).toEqual([[`only_${number}`]]);
  }
});

it("a server ends within 5 s after its last user is killed with -9", async () => {
  const user = new UserProcess({});
  const server = await user.started();
  const supervisor = parentOf(server.pid);
  await user.kill();
  await until("server and directory are gone", () => isGone(server), 5000);
  await until("the supervisor is gone", () => !isRunning(supervisor), 5000);
});

it.concurrent("a user that is killed with -9 while its server starts leaves nothing behind", async () => {
  const base = temporaryDirectory(0o755);
  const user = new UserProcess({}, { env: { TMPDIR: base } });
  const servers = () => readdirSync(base).filter((name) => !name.includes("cache"));
  await until("the supervisor has begun", () => servers().length > 0, 10_000);
  await user.kill();
  await until(
    "everything is gone",
    () => servers().length === 0 && processesMentioning(base).length === 0,
    10_000,
  );
});

it.concurrent("a user need not call stop: its process ends by itself, its output ends with it, and then the server", async () => {
  const user = new UserProcess({}, { afterwards: "leave" });
  const server = await user.started();
  await user.ended(); // "close" comes only when nobody holds its output any more
  await until("the server is gone", () => isGone(server));
});

it.concurrent("a server ends when its supervisor is killed with -9", async () => {
  const server = await startLocalPostgres();
  process.kill(parentOf(server.pid), "SIGKILL");
  await until("server and directory are gone", () => isGone(server));
  await expect(server.restart()).rejects.toMatchObject({
    code: "StartFailed",
    message: /startLocalPostgres again/,
  });
  await server.stop();
});

it.concurrent("what a supervisor and its watcher leave when both are killed is cleaned by the next start", async () => {
  const base = temporaryDirectory(0o755);
  const user = new UserProcess({}, { env: { TMPDIR: base } });
  const orphan = await user.started();
  const supervisor = parentOf(orphan.pid);
  const watcher = processesMentioning(`sh ${dirname(orphan.directory)}`);
  expect(watcher).toHaveLength(1);
  // The watcher first would be replaced; stopped, it cannot act before it is killed.
  for (const pid of watcher) process.kill(pid, "SIGSTOP");
  process.kill(supervisor, "SIGKILL");
  for (const pid of watcher) process.kill(pid, "SIGKILL");
  await user.kill();
  expect(isRunning(orphan.pid)).toBe(true);

  const next = new UserProcess({}, { env: { TMPDIR: base } });
  const server = await next.started();
  await until("the orphan is gone", () => isGone(orphan));
  expect(existsSync(server.directory)).toBe(true);
  await next.kill();
  await until("the next one as well", () => isGone(server));
});
