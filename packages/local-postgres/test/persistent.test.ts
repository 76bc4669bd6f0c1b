/**
 * Servers on a directory that stays: shared by those who name it, and recovered from every kind of
 * end.
 */
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { expect, it } from "vitest";
import { startLocalPostgres } from "../dist/index.js";
import { isGone, isRunning, parentOf, processesMentioning, query, runtimeDirectoryOf } from "./observe.js";
import { stopAtEnd, temporaryDirectory, until } from "./observe.js";
import { UserProcess } from "./user-process.js";

/**
 * A base backup by hand, with the lock file and the server's record, which do not concern the copy.
 */
async function copyWhileRunning(server: { url: string; directory: string }, target: string): Promise<string> {
  const client = new Client(server.url);
  await client.connect();
  await client.query("select pg_backup_start('copy', true)");
  cpSync(server.directory, target, { recursive: true });
  const result = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop()");
  await client.end();
  return result.rows[0]?.labelfile ?? "";
}

it.concurrent("data in a named directory survives its server", async () => {
  const directory = join(temporaryDirectory(), "made", "on demand");
  const first = await startLocalPostgres({ directory });
  await query(first.url, "create table kept as select 42 as answer");
  await first.stop();
  expect(isGone(first)).toBe(true);
  const second = stopAtEnd(await startLocalPostgres({ directory }));
  expect(await query(second.url, "select answer from kept")).toEqual([[42]]);
});

it.concurrent("processes that name the same directory at the same moment share one server", async () => {
  const directory = join(temporaryDirectory(), "data");
  const users = Array.from(
    { length: 4 },
    (_, number) => new UserProcess({ directory, database: `of_${number % 2}` }),
  );
  const servers = await Promise.all(users.map((user) => user.started()));
  expect(new Set(servers.map((server) => server.pid)).size).toBe(1);
  expect(await query(servers[1]?.url ?? "", "select current_database()")).toEqual([["of_1"]]);
  await Promise.all(users.map((user) => user.kill()));
  await until("the server is gone", () => servers.every(isGone));
});

it.concurrent("a server lives until its last user has let go, also when named through a symbolic link", async () => {
  const parent = temporaryDirectory();
  const directory = join(parent, "data");
  const first = await startLocalPostgres({ directory });
  symlinkSync(directory, join(parent, "link"));
  const second = new UserProcess({ directory: join(parent, "link") }, { afterwards: "stop" });
  expect((await second.started()).pid).toBe(first.pid);
  await first.stop();
  expect(await query(first.url, "select 1")).toEqual([[1]]);
  second.child.stdin?.end();
  await second.ended();
  expect(isGone(first)).toBe(true);
});

it.concurrent("a server whose users go and come within a moment goes on", async () => {
  const directory = join(temporaryDirectory(), "data");
  const first = new UserProcess({ directory });
  const { pid } = await first.started();
  await first.kill();
  const second = stopAtEnd(await startLocalPostgres({ directory }));
  expect(second.pid).toBe(pid);
});

it.concurrent("a directory whose supervisor was killed with -9 is taken over, with all its data", async () => {
  const directory = join(temporaryDirectory(), "data");
  const first = await startLocalPostgres({ directory });
  await query(first.url, "create table kept as select 42 as answer");
  process.kill(parentOf(first.pid), "SIGKILL");
  const second = stopAtEnd(await startLocalPostgres({ directory }));
  expect(second.pid).not.toBe(first.pid);
  expect(await query(second.url, "select answer from kept")).toEqual([[42]]);
  await until("the orphaned server is gone", () => isGone(first));
});

it.concurrent("a postmaster that outlived its supervisor and watcher is ended before the next one starts", async () => {
  const directory = join(temporaryDirectory(), "data");
  const first = await startLocalPostgres({ directory });
  await query(first.url, "create table kept as select 42 as answer");
  const supervisor = parentOf(first.pid);
  const watcher = processesMentioning(`sh ${runtimeDirectoryOf(first.url)}`);
  for (const pid of watcher) process.kill(pid, "SIGSTOP");
  process.kill(supervisor, "SIGKILL");
  for (const pid of watcher) process.kill(pid, "SIGKILL");
  expect(isRunning(first.pid)).toBe(true);
  const second = stopAtEnd(await startLocalPostgres({ directory }));
  expect(isRunning(first.pid)).toBe(false);
  expect(await query(second.url, "select answer from kept")).toEqual([[42]]);
});

it.concurrent("a postmaster.pid that names another process stops nobody", async () => {
  const directory = join(temporaryDirectory(), "data");
  await (await startLocalPostgres({ directory })).stop();
  writeFileSync(join(directory, "postmaster.pid"), `${process.pid}\n${directory}\n1\n5432\n\n\n\nready\n`);
  const server = stopAtEnd(await startLocalPostgres({ directory }));
  expect(await query(server.url, "select 1")).toEqual([[1]]);
});

it.concurrent("a copy of a running directory gets a server of its own", async () => {
  const parent = temporaryDirectory();
  const original = stopAtEnd(await startLocalPostgres({ directory: join(parent, "original") }));
  await copyWhileRunning(original, join(parent, "copy"));
  const copy = stopAtEnd(await startLocalPostgres({ directory: join(parent, "copy") }));
  expect(copy.pid).not.toBe(original.pid);
  expect(isRunning(original.pid)).toBe(true);
  expect(await query(original.url, "select 1")).toEqual([[1]]);
});

it.concurrent("a copy with a standby.signal follows the server it was copied from", async () => {
  const directory = join(temporaryDirectory(), "standby");
  const primary = stopAtEnd(await startLocalPostgres());
  writeFileSync(join(directory, "backup_label"), await copyWhileRunning(primary, directory));
  writeFileSync(join(directory, "standby.signal"), "");
  const host = new URL(primary.url).searchParams.get("host") ?? "";
  const settings = { primary_conninfo: `host=${host} user=postgres` };
  const standby = stopAtEnd(await startLocalPostgres({ directory, port: "free", settings }));
  expect(await query(standby.url, "select pg_is_in_recovery()")).toEqual([[true]]);
  await query(primary.url, "create table copied ()");
  const [position] = await query(primary.url, "select pg_current_wal_lsn()::text");
  await query(
    standby.url,
    `do $$ begin
    while pg_last_wal_replay_lsn() < '${String(position?.[0])}' loop perform pg_sleep(0.01); end loop;
  end $$`,
  );
  expect(await query(standby.url, "select count(*)::int from copied")).toEqual([[0]]);
});

it.concurrent("an initialisation that was cut short is begun again", async () => {
  const directory = join(temporaryDirectory(), "data");
  mkdirSync(join(directory, "base"), { recursive: true });
  writeFileSync(join(directory, "pawl-initialising"), "");
  const server = stopAtEnd(await startLocalPostgres({ directory }));
  expect(await query(server.url, "select 1")).toEqual([[1]]);
});

it.concurrent("a directory with anything else in it is refused and left as it is", async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "diary.txt"), "dear diary");
  await expect(startLocalPostgres({ directory })).rejects.toMatchObject({
    code: "InvalidOption",
    message: /diary\.txt/,
  });
  expect(readdirSync(directory)).toEqual(["diary.txt"]);
  rmSync(join(directory, "diary.txt"));
  writeFileSync(join(directory, "PG_VERSION"), "9\n");
  await expect(startLocalPostgres({ directory })).rejects.toMatchObject({
    code: "StartFailed",
    message: /made by PostgreSQL 9, and this is PostgreSQL 18/,
  });
});

it.concurrent("a user that wants other settings than the running server has is refused, with both", async () => {
  const directory = join(temporaryDirectory(), "data");
  const settings = { work_mem: "8MB" };
  const first = stopAtEnd(await startLocalPostgres({ directory, settings }));
  expect(await query(first.url, "show work_mem")).toEqual([["8MB"]]);
  stopAtEnd(await startLocalPostgres({ directory, settings }));
  const other = startLocalPostgres({ directory, settings: { work_mem: "9MB" } });
  await expect(other).rejects.toMatchObject({ code: "InvalidOption", message: /work_mem = 8MB, not 9MB/ });
  await expect(startLocalPostgres({ directory, port: 40_000 })).rejects.toMatchObject({
    message: /without a port/,
  });
});
