/** Where a server listens, who may connect, and that its address outlives the process behind it. */
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startLocalPostgres } from "../dist/index.js";
import {
  isGone,
  isRunning,
  query,
  runtimeDirectoryOf,
  stopAtEnd,
  temporaryDirectory,
  until,
} from "./observe.js";
import { UserProcess } from "./user-process.js";

it.concurrent("a port asks for the password that the URL carries", async () => {
  const server = stopAtEnd(await startLocalPostgres({ port: "free" }));
  const url = new URL(server.url);
  expect(url.hostname).toBe("127.0.0.1");
  expect(await query(server.url, "show listen_addresses")).toEqual([["127.0.0.1"]]);
  url.password = "guessed";
  await expect(query(url.href, "select 1")).rejects.toThrow(/password authentication failed/);
});

it.concurrent("a named port is used, a second server on it is refused, and the URL of a directory stays the same", async () => {
  const directory = join(temporaryDirectory(), "data");
  const first = await startLocalPostgres({ directory, port: "free" });
  const port = Number(new URL(first.url).port);
  await expect(startLocalPostgres({ port })).rejects.toMatchObject({
    code: "PortTaken",
    message: /port: "free"[^]*Address already in use/,
  });
  await first.stop();
  const second = stopAtEnd(await startLocalPostgres({ directory, port }));
  expect(second.url).toBe(first.url);
});

it.concurrent("a port that any other program holds is PortTaken", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const address = holder.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  try {
    await expect(startLocalPostgres({ port })).rejects.toMatchObject({ code: "PortTaken" });
  } finally {
    holder.close();
  }
});

it.concurrent("both restart modes keep address and data, and change the process", async () => {
  const server = stopAtEnd(await startLocalPostgres({ port: "free" }));
  await query(server.url, "create table kept ()");
  for (const mode of ["fast", "immediate"] as const) {
    const { pid } = server;
    await server.restart({ mode });
    expect(server.pid).not.toBe(pid);
    expect(isRunning(pid)).toBe(false);
    expect(await query(server.url, "select count(*)::int from kept")).toEqual([[0]]);
  }
});

it.concurrent("a killed server stays down until start() brings it back at its address", async () => {
  const server = stopAtEnd(await startLocalPostgres());
  const { pid } = server;
  await server.kill();
  expect(isRunning(pid)).toBe(false);
  await expect(query(server.url, "select 1")).rejects.toThrow(/ENOENT|ECONNREFUSED/);
  await server.start();
  await server.start(); // does nothing when it runs
  expect(server.pid).not.toBe(pid);
  expect(await query(server.url, "select 1")).toEqual([[1]]);
});

it.concurrent("a postmaster killed with -9 can be started again", async () => {
  const server = stopAtEnd(await startLocalPostgres());
  const { pid } = server;
  process.kill(pid, "SIGKILL");
  await until("the postmaster is gone", () => !isRunning(pid));
  await server.start();
  expect(await query(server.url, "select 1")).toEqual([[1]]);
});

it.concurrent("every user sees the process id after somebody else's restart", async () => {
  const directory = join(temporaryDirectory(), "data");
  const first = stopAtEnd(await startLocalPostgres({ directory }));
  const second = stopAtEnd(await startLocalPostgres({ directory }));
  await first.restart({ mode: "immediate" });
  await until("both know the same process", () => first.pid === second.pid);
});

it.concurrent("a temporary directory too long for a unix socket is replaced by a shorter one", async () => {
  const long = join(temporaryDirectory(), "x".repeat(100));
  mkdirSync(long);
  const user = new UserProcess({}, { env: { TMPDIR: long } });
  const server = await user.started();
  expect(await query(server.url, "select 1")).toEqual([[1]]);
  expect(Buffer.byteLength(join(runtimeDirectoryOf(server.url), "socket", ".s.PGSQL.5432"))).toBeLessThan(
    104,
  );
  await user.kill();
  await until("it is gone", () => isGone(server));
});

it.concurrent("a persistent directory may have a path of any length", async () => {
  const directory = join(temporaryDirectory(), "y".repeat(200), "data");
  const server = stopAtEnd(await startLocalPostgres({ directory }));
  expect(await query(server.url, "select 1")).toEqual([[1]]);
});

it.concurrent("databases and settings may have names and values that need quoting", async () => {
  const database = `it's "quoted" é`;
  const server = stopAtEnd(
    await startLocalPostgres({ database, settings: { "my.setting": "a 'b' \"c\"", fsync: false } }),
  );
  const rows = await query(
    server.url,
    "select current_database(), current_setting('my.setting'), current_setting('fsync')",
  );
  expect(rows).toEqual([[database, "a 'b' \"c\"", "off"]]);
});
