/**
 * Claims that the database has for a worker which does not execute them: their run is released,
 * however old the claim is and however long the database was away.
 */

import { job, type Logger } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent, testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { proxyTo } from "../../support/proxies/proxy.js";
import { relayTo } from "../../support/proxies/relay.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

/** So rare that no beat of the test compares anything. */
const rareBeats = { lease: "2m", heartbeat: "40s" } as const;

/** Makes a run executing, by a claim of this worker that is older than any beat asks for. */
async function orphan(runId: string, workerId: string): Promise<void> {
  await sql(
    "update runs set status = 'executing', locked_by = $2, claim_id = 4711, turn = 0, eligible_at = clock_timestamp() where id = $1",
    [runId, workerId],
  );
}

async function workerOf(name: string): Promise<string> {
  const [worker] = await sql<{ id: string }>("select id from workers where serves @> array[$1]", [
    `${name}@1`,
  ]);
  return worker!.id;
}

describe("a claim of any age that nobody executes is released", () => {
  it("when the server writes another timeline, and what is executed goes on", async () => {
    const running = gate();
    const lost = job({
      name: "lost",
      queue: "lost",
      run: async (_ctx, name: string) => {
        if (name === "busy") await running.pass();
        return name;
      },
    });
    await serve([lost], { heartbeat: "100ms", pollInterval: "1h", maxPollInterval: "1h" });
    const workerId = await workerOf("lost");
    const busy = await pawl.start(lost, "busy");
    await until("it runs", running.entered);
    const first = await pawl.start(lost, "first", { delay: "1h" });
    await orphan(first.runId, workerId);
    // The first time a beat asks for claims of any age: from then on only for the latest.
    expect(await pawl.result(first.runId, { timeout: "100s" })).toBe("first");
    const second = await pawl.start(lost, "second", { delay: "1h" });
    await orphan(second.runId, workerId);
    await sql(
      "create or replace function pawl.timeline() returns text language sql volatile as $$ select 'other' $$",
    );
    expect(await pawl.result(second.runId, { timeout: "100s" })).toBe("second");
    running.open();
    expect(await pawl.result(busy.runId)).toBe("busy");
    expect(await pawl.runs.get(busy.runId)).toMatchObject({ attempt: 0 });
    expect(await pawl.runs.get(second.runId)).toMatchObject({ attempt: 0 });
  });

  it("when the heartbeat is back after it has failed", async () => {
    const proxy = await proxyTo(database.url);
    const cutOff = job({ name: "cut-off", queue: "cut-off", run: (_ctx, name: string) => name });
    const failures: string[] = [];
    const logger: Logger = {
      ...silent,
      warn: (_details: object | string, message?: string) => void failures.push(message ?? ""),
    };
    await serve([cutOff], { url: proxy.url, lease: "30s", heartbeat: "100ms", logger });
    const workerId = await workerOf("cut-off");
    const first = await pawl.start(cutOff, "first", { delay: "1h" });
    await orphan(first.runId, workerId);
    expect(await pawl.result(first.runId, { timeout: "100s" })).toBe("first");
    const second = await pawl.start(cutOff, "second", { delay: "1h" });
    await orphan(second.runId, workerId);
    proxy.cut();
    await until("a beat has failed", () => failures.some((message) => message.includes("heartbeat failed")));
    proxy.restore();
    expect(await pawl.result(second.runId, { timeout: "100s" })).toBe("second");
    expect(await workerOf("cut-off")).toBe(workerId);
  });
});

it("a claim whose answer is still on its way is not released, although nobody executes it yet", async () => {
  let isHolding = true;
  let compared = 0;
  let beats = 0;
  const heldBack: (() => void)[] = [];
  const relay = await relayTo(database.url, ({ client, database: server }) => {
    let isComparison = false;
    client.on("data", (chunk: Buffer) => {
      isComparison = chunk.includes(".claims_of_worker(");
      if (chunk.includes(".beat(")) beats++;
      server.write(chunk);
    });
    server.on("data", (chunk: Buffer) => {
      // The answer to a claim that brings the run.
      if (isHolding && chunk.includes("under-way")) heldBack.push(() => client.write(chunk));
      else client.write(chunk);
      if (isComparison) compared++;
    });
  });
  let calls = 0;
  const underWay = job({ name: "under-way", queue: "under-way", run: () => ++calls });
  const worker = await serve([underWay], { url: relay.url, heartbeat: "100ms", lease: "1m" });
  await until("the worker has heard of a beat", () => beats > 2);
  const { runId } = await pawl.start(underWay, null);
  const claims = () =>
    sql<{ claim_id: string }>("select claim_id from runs where id = $1 and status = 'executing'", [runId]);
  const [claimed] = await until("it is claimed", async () => {
    const rows = await claims();
    return rows.length === 1 ? rows : null;
  });
  await sql("create or replace function pawl.timeline() returns text language sql as $$ select 'third' $$");
  await until("everything was compared", () => compared > 0);
  await sql("create or replace function pawl.timeline() returns text language sql as $$ select 'fourth' $$");
  await until("everything was compared again", () => compared > 1);
  expect(await claims()).toEqual([claimed]);
  isHolding = false;
  for (const pass of heldBack) pass();
  expect(await pawl.result(runId)).toBe(1);
  await worker.stop();
  await relay.close();
});

describe("a claim whose execution has ended without an outcome is released", () => {
  it("when the commit of a transaction is lost, and the database is away for long", async () => {
    await sql("create table public.moved (run_id text)");
    let isAway = false;
    let refused = 0;
    const relay = await relayTo(database.url, ({ client, database: server, end }) => {
      if (isAway) {
        refused++;
        end();
        return;
      }
      client.on("data", (chunk: Buffer) => {
        if (chunk.includes("commit;reset session") && refused === 0) {
          isAway = true;
          relay.reset();
        } else {
          server.write(chunk);
        }
      });
      server.pipe(client);
    });
    const moving = job({
      name: "moving",
      queue: "moving",
      maxAttempts: 1,
      run: (ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query("insert into public.moved values ($1)", [ctx.runId]);
          return "moved";
        }),
    });
    const warnings: string[] = [];
    const logger: Logger = {
      ...silent,
      warn: (_details: object | string, message?: string) => void warnings.push(message ?? ""),
    };
    const worker = await serve([moving], { url: relay.url, ...rareBeats, logger });
    const { runId } = await pawl.start(moving, null);
    await until("the database is away", () => isAway);
    // Longer than any fixed number of tries: connections were refused to the release and to others.
    const awayMs = Date.now();
    await until("it is away for three seconds", () => Date.now() - awayMs > 3_000);
    isAway = false;
    expect(await pawl.result(runId, { timeout: "100s" })).toBe("moved");
    expect(await sql("select from public.moved where run_id = $1", [runId])).toHaveLength(1);
    expect(await pawl.runs.get(runId)).toMatchObject({ attempt: 0 });
    expect(warnings.filter((message) => message.includes("could not be released"))).toHaveLength(1);
    await worker.stop();
    await relay.close();
  });

  it("when the database refuses whatever the run comes to", async () => {
    const again = gate();
    let calls = 0;
    const refused = job({
      name: "refused",
      queue: "refused",
      run: async () => {
        if (++calls === 2) await again.pass();
        return calls;
      },
    });
    await serve([refused], rareBeats);
    await sql(
      "alter table runs add constraint endless check (name <> 'refused' or completed_at is null) not valid",
    );
    const { runId } = await pawl.start(refused, null);
    await until("it is tried again", again.entered);
    await sql("alter table runs drop constraint endless");
    again.open();
    expect(await pawl.result(runId, { timeout: "100s" })).toBe(2);
    expect(await pawl.runs.get(runId)).toMatchObject({ attempt: 0 });
  });

  it("when its turn is not the one that the database knows", async () => {
    const running = gate();
    let calls = 0;
    const behind = job({
      name: "behind",
      queue: "behind",
      run: async () => {
        if (++calls === 1) await running.pass();
        return calls;
      },
    });
    await serve([behind], rareBeats);
    const { runId } = await pawl.start(behind, null);
    await until("it runs", running.entered);
    await sql("update runs set turn = 7 where id = $1", [runId]);
    running.open();
    expect(await pawl.result(runId, { timeout: "100s" })).toBe(2);
  });

  it("when somebody has had the row of a cancelled run locked for long", async () => {
    const running = gate();
    const locked = job({ name: "locked", queue: "locked", run: () => running.pass() });
    await serve([locked], { ...rareBeats, drainTimeout: "1m" });
    const { runId } = await pawl.start(locked, null, { partitionKey: "k" });
    await until("it runs", running.entered);
    await pawl.runs.cancel(runId);
    const holder = await database.connect();
    await holder.query("begin");
    await holder.query("select from runs where id = $1 for update", [runId]);
    running.open();
    const lockedMs = Date.now();
    await until("it is locked for longer than a second", () => Date.now() - lockedMs > 1_500);
    await holder.query("commit");
    await until("nobody holds it", async () => {
      return (await sql("select from runs where id = $1 and locked_by is null", [runId])).length === 1;
    });
  });
});
