import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect } from "pawl";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { firstMessage } from "../../support/first-message.js";
import { lastingPort } from "../../support/lasting-port.js";
import { until } from "../../support/until.js";
import { linear } from "../programs/definitions.js";
import { type Fleet, makeFleet, makeLedger } from "../arena/fleet.js";

const database = await testDatabase();
const { sql } = database;
const ledger = await makeLedger();
const program = fileURLToPath(new URL("../../dist/faults/programs/server.js", import.meta.url));

const port = await lastingPort();

let server: ChildProcess;
async function startServer(): Promise<string> {
  server = fork(program, {
    env: { ...process.env, DATABASE_URL: database.url, PAWL_URL: "", PORT: String(port) },
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  return firstMessage<string>(server);
}

async function killServer(): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, "exit");
  server.kill("SIGKILL");
  await ended;
}

const url = await startServer();
const pawl = connect(url, { logger: silent });
afterAll(async () => {
  await pawl.close();
  await killServer();
});

let fleet: Fleet;
beforeEach(() => {
  fleet = makeFleet(url, ledger.url);
});
afterEach(() => fleet.stop());

const path = ["start", "second", "third", "fourth", "last"];
const inputs = (count: number) => Array.from({ length: count }, () => ({ input: { path: [] as string[] } }));

const unfinished = async (): Promise<number> => {
  const [row] = await sql<{ n: number }>("select count(*)::int as n from runs where completed_at is null");
  return row!.n;
};

/** All of them are done, each by the whole way, and nobody holds anything. */
async function expectAllDone(): Promise<void> {
  await until("all have ended", async () => (await unfinished()) === 0, 60_000);
  const wrong = await sql(
    "select id, status, result, error from runs where status <> 'done' or result <> $1",
    [JSON.stringify(path)],
  );
  expect(wrong).toEqual([]);
  expect(await sql("select from runs where locked_by is not null")).toEqual([]);
}

describe("a server that is killed and started again", () => {
  it("loses no run: workers and who waits for results come back by themselves", async () => {
    await fleet.grow(2);
    const pids = fleet.pids().toSorted();
    const started = await pawl.startMany(linear, inputs(120));
    const results = Promise.all(started.map(({ runId }) => pawl.result(runId)));
    let kills = 0;
    for (let left = 120; left > 0 && kills < 2;) {
      await until("some more have ended", async () => (await unfinished()) < left);
      await killServer();
      kills++;
      await startServer();
      left = (await unfinished()) - 30;
    }
    await expectAllDone();
    expect(await results).toEqual(started.map(() => path));
    expect(kills).toBeGreaterThan(0);
    expect(fleet.deaths()).toBe(0);
    expect(fleet.pids().toSorted()).toEqual(pids);
  }, 300_000);

  it("for longer than the lease: the workers go on under new ids when it is back", async () => {
    await fleet.grow(1);
    const [before] = await sql<{ id: string }>("select id from workers where cardinality(serves) > 0");
    await killServer();
    await until("the lease is lost", () => fleet.logged("the lease is lost") > 0, 20_000);
    await startServer();
    const started = await pawl.startMany(linear, inputs(20));
    for (const { runId } of started) expect(await pawl.result(runId)).toEqual(path);
    const [after] = await sql<{ id: string }>(
      "select id from workers where cardinality(serves) > 0 order by registered_at desc limit 1",
    );
    expect(after!.id).not.toBe(before!.id);
    expect(fleet.deaths()).toBe(0);
  }, 300_000);
});

describe("remote workers that are killed", () => {
  it("lose no run: others finish them", async () => {
    fleet.replaceTheDead();
    await fleet.grow(2);
    await pawl.startMany(linear, inputs(120));
    for (let kills = 0; kills < 2; kills++) {
      const left = await unfinished();
      await until("some more have ended", async () => (await unfinished()) < Math.max(left, 1));
      await until("one is killed", () => fleet.killOne());
    }
    await expectAllDone();
    const [steps] = await ledger.sql<{ different: number }>(
      "select count(distinct (run_id, step))::int as different from public.ledger",
    );
    expect(steps!.different).toBeGreaterThanOrEqual(120 * path.length);
  }, 300_000);
});
