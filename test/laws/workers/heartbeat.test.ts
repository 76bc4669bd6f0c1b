/** The heartbeat thread of a process, which all its workers share, and what becomes of leases that are lost. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { execFileSync, spawn } from "node:child_process";
import type { Worker as Thread } from "node:worker_threads";
import { job, migrate } from "pawl";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { requireBuild } from "../../support/built.js";
import { testDatabase } from "../../support/database.js";
import { shortLease, silent, testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

/** The threads that were started since the test began. */
const threads: Thread[] = [];
const count = (message: unknown): void => void threads.push((message as { worker: Thread }).worker);
beforeEach(() => {
  threads.length = 0;
  subscribe("worker_threads", count);
});
afterEach(() => void unsubscribe("worker_threads", count));

const named = (name: string) => job({ name, queue: name, run: () => name });
/** No machine is so slow that this lease is lost. */
const safe = { lease: "5m", heartbeat: "100ms" } as const;

interface WorkerRow {
  readonly id: string;
  readonly seen_at: string;
}
const rowsOf = (name: string) =>
  sql<WorkerRow>(
    "select id, seen_at::text as seen_at from workers where serves @> array[$1 || '@1'] order by registered_at",
    [name],
  );
/** Waits until this worker id has beaten once more. */
const beatsAgain = async (name: string, id: string) => {
  const seen = async () => (await rowsOf(name)).find((row) => row.id === id)?.seen_at;
  const before = await seen();
  await until(`${name} beats`, async () => (await seen()) !== before);
};

describe("one thread", () => {
  it("beats for all workers of the process, whatever their schema and options, and ends with the last", async () => {
    if (database.server === undefined) await migrate({ url: database.directUrl, schema: "other" });
    const schema = database.server === undefined ? { schema: "other" } : {};
    const names = Array.from({ length: 25 }, (_, n) => `shared-${n}`);
    const workers = await Promise.all(names.map((name) => serve([named(name)], safe)));
    workers.push(await serve([named("elsewhere")], { ...safe, heartbeat: "200ms", ...schema }));
    for (const name of names) await beatsAgain(name, (await rowsOf(name))[0]!.id);
    expect(threads).toHaveLength(1);
    let ended = false;
    threads[0]!.once("exit", () => (ended = true));
    const last = workers.pop()!;
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(ended).toBe(false);
    await last.stop();
    expect(ended).toBe(true);
  });

  it("goes on when a worker loses its lease: the others keep theirs, and it gets another in the same thread", async () => {
    const [unlucky, bystander] = [
      await serve([named("unlucky")], safe),
      await serve([named("bystander")], safe),
    ];
    const lost: string[] = [];
    unlucky.on("lease.lost", () => lost.push("unlucky"));
    bystander.on("lease.lost", () => lost.push("bystander"));
    const [other] = await rowsOf("bystander");
    for (let round = 1; round <= 3; round++) {
      const before = (await rowsOf("unlucky")).at(-1)!;
      await sql("update workers set seen_at = seen_at - interval '1 hour' where id = $1", [before.id]);
      await until("its lease is lost", () => lost.length === round);
      await until("it has a new id", async () => (await rowsOf("unlucky")).at(-1)!.id !== before.id);
      expect(await pawl.result((await pawl.start("unlucky", null)).runId)).toBe("unlucky");
    }
    await beatsAgain("bystander", other!.id);
    expect(lost).toEqual(["unlucky", "unlucky", "unlucky"]);
    expect(threads).toHaveLength(1);
    await Promise.all([unlucky.stop(), bystander.stop()]);
  });

  it("that dies is replaced, and no lease is lost by it", async () => {
    const logged: string[] = [];
    const logger = {
      ...silent,
      error: (_: object | string, message?: string) => void logged.push(message ?? ""),
    };
    const names = ["survivor-1", "survivor-2"];
    const workers = [];
    for (const name of names) workers.push(await serve([named(name)], { ...safe, logger }));
    const ids = await Promise.all(names.map(async (name) => (await rowsOf(name))[0]!.id));
    for (const [n, name] of names.entries()) await beatsAgain(name, ids[n]!);
    for (let deaths = 1; deaths <= 2; deaths++) {
      await threads.at(-1)!.terminate();
      await until("another thread is there", () => threads.length === deaths + 1);
      for (const [n, name] of names.entries()) await beatsAgain(name, ids[n]!);
    }
    expect(logged.filter((message) => message.includes("heartbeat thread has died"))).toHaveLength(2);
    expect(logged.filter((message) => message.includes("lease is lost"))).toEqual([]);
    for (const name of names) expect(await rowsOf(name)).toHaveLength(1);
    await Promise.all(workers.map((worker) => worker.stop()));
  });

  it("where no heartbeat thread can start, the main loop sends heartbeats, and says so once", async () => {
    requireBuild();
    const program = `
      import { job, serve } from "pawl";
      const logger = { debug() {}, info() {}, warn: (_, text) => console.log(text), error: (_, text) => console.log(text) };
      const workers = ["lonely-1", "lonely-2"].map((name) => serve([job({ name, run: () => name })],
        { url: process.argv[1], lease: "5m", heartbeat: "50ms", logger }));
      await Promise.all(workers.map(({ ready }) => ready));
      console.log("ready");
      process.stdin.once("data", () => Promise.all(workers.map((worker) => worker.stop())).then(() => process.stdin.destroy()));`;
    const flags = ["--experimental-permission", "--allow-fs-read=*", "--allow-fs-write=*"];
    const url = database.server ?? database.url;
    const child = spawn(process.execPath, [...flags, "--input-type=module", "-e", program, url], {
      cwd: new URL("../..", import.meta.url),
    });
    let said = "";
    child.stdout.on("data", (text: Buffer) => (said += text.toString()));
    child.stderr.on("data", (text: Buffer) => (said += text.toString()));
    const ended = new Promise((resolve) => child.once("exit", resolve));
    await until("it is ready", () => said.includes("ready"));
    for (const name of ["lonely-1", "lonely-2"]) await beatsAgain(name, (await rowsOf(name))[0]!.id);
    child.stdin.write("stop");
    expect(await ended).toBe(0);
    expect(said.match(/beating in the main loop/g)).toHaveLength(1);
  });
});

describe("a lease", () => {
  it("that was lost is taken again only with a heartbeat that was confirmed, and until then nothing is claimed", async () => {
    const lost: unknown[] = [];
    const worker = await serve([named("patient")], shortLease);
    worker.on("lease.lost", (event) => lost.push(event));
    await sql("alter function beat(text, bigint) rename to beat_elsewhere");
    await until("the lease is lost", () => lost.length === 1);
    const { runId } = await pawl.start("patient", null);
    const before = (await rowsOf("patient")).length;
    // Registrations whose lease passes without a beat are no further losses: there is nothing to lose.
    await until("it has registered again and again", async () => {
      return (await rowsOf("patient")).length >= before + 2;
    });
    expect(lost).toHaveLength(1);
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "runnable", attempt: 0 });
    await sql("alter function beat_elsewhere(text, bigint) rename to beat");
    expect(await pawl.result(runId)).toBe("patient");
    expect((await pawl.runs.get(runId)).attempt).toBe(0);
    await worker.stop();
  });

  it("holds from the registration on, though the loop is too busy to hear of it for longer than the lease", async () => {
    // The thread is there already, and the registration waits.
    const first = await serve([named("first")], safe);
    const holder = await database.connect();
    await holder.query("begin; lock table definitions in exclusive mode");
    const [{ pid }] = (await holder.query<{ pid: number }>("select pg_backend_pid() as pid")).rows as [
      { pid: number },
    ];
    const ready = serve([named("slow-to-hear")], { lease: "4s", heartbeat: "200ms" });
    await until("the registration waits", async () => {
      const waiting = "wait_event_type = 'Lock' and query like '%register%' and datname = current_database()";
      return (await sql(`select from pg_stat_activity where ${waiting}`)).length > 0;
    });
    // Blocks this loop until the worker has been beaten for longer than its lease.
    const program = `
      import pg from "pg";
      const client = new pg.Client({ connectionString: process.argv[1] });
      await client.connect();
      await client.query("select pg_terminate_backend($1)", [Number(process.argv[2])]);
      for (;;) {
        const { rows } = await client.query("select from pawl.workers where serves @> '{slow-to-hear@1}' and seen_at > registered_at + lease");
        if (rows.length > 0) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await client.end();`;
    const args = ["--input-type=module", "-e", program, database.directUrl, String(pid)];
    execFileSync(process.execPath, args, { cwd: new URL("../..", import.meta.url), timeout: 60_000 });
    const worker = await ready;
    const lost: unknown[] = [];
    worker.on("lease.lost", (event) => lost.push(event));
    expect(await pawl.result((await pawl.start("slow-to-hear", null)).runId)).toBe("slow-to-hear");
    expect(await rowsOf("slow-to-hear")).toHaveLength(1);
    await Promise.all([first.stop(), worker.stop()]);
    expect(lost).toEqual([]);
  });
});
