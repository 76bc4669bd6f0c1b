/**
 * Callers that wait for what somebody's open transaction has locked, more of them than the client has connections. They
 * wait, and everybody else is answered; when the transaction ends, so do they.
 */

import { job, type Pawl } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const idle = job({ name: "idle", queue: "nobody", run: () => 0 });
const quick = job({ name: "quick", run: () => 1 });
await serve([quick]);

/** More than any pool of connections in between. */
const many = 25;

interface Locked {
  /** What the callers ask for. */
  readonly call: (n: number) => Promise<unknown>;
  /** What the open transaction does. */
  readonly lock: readonly [text: string, values?: unknown[]];
}

const started = async (): Promise<string> => (await pawl.start(idle, null)).runId;

const waits: Record<string, () => Promise<Locked>> = {
  "cancel a run": async () => {
    const runId = await started();
    return {
      call: (n) => pawl.runs.cancel(runId, { reason: `reason ${n}` }),
      lock: ["select from runs where id = $1 for update", [runId]],
    };
  },
  "cancel a run with all below it": async () => {
    const runId = await started();
    const child = await started();
    await sql("update runs set parent_id = $1 where id = $2", [runId, child]);
    return {
      call: () => pawl.runs.cancel(runId, { cascade: true }),
      lock: ["select from runs where id = $1 for update", [child]],
    };
  },
  "start many runs with a unique key": () =>
    Promise.resolve({
      call: (n) => pawl.startMany(idle, [{ input: n, uniqueKey: "taken" }, { input: n }]),
      lock: ["select start('idle', '1', unique_key => 'taken')"],
    }),
  "start a list of one run with an idempotency key": () =>
    Promise.resolve({
      call: (n) => pawl.startMany(idle, [{ input: n, idempotencyKey: "taken" }]),
      lock: ["select start('idle', '1', idempotency_key => 'taken')"],
    }),
  "publish with a dedup key": () =>
    Promise.resolve({
      call: () => pawl.topics.publish("orders.new", {}, { dedupKey: "taken" }),
      lock: ["select publish('orders.new', '{}', dedup_key => 'taken')"],
    }),
  "acknowledge messages": async () => {
    await Promise.all(Array.from({ length: many }, (_, n) => pawl.queues.send("acked", n)));
    const messages = await pawl.queues.receive("acked", { max: many });
    return {
      call: (n) => pawl.queues.ack("acked", messages[n]!),
      lock: ["select from runs where queue = 'acked' for update"],
    };
  },
  "extend messages": async () => {
    await Promise.all(Array.from({ length: many }, (_, n) => pawl.queues.send("extended", n)));
    const messages = await pawl.queues.receive("extended", { max: many });
    return {
      call: (n) => pawl.queues.extend("extended", messages[n]!, "1m"),
      lock: ["select from runs where queue = 'extended' for update"],
    };
  },
};

/** What others do meanwhile. */
async function others(client: Pawl): Promise<void> {
  const { runId } = await client.start(quick, null);
  expect(await client.result(runId)).toBe(1);
  const { runId: other } = await client.start(idle, null);
  expect(await client.runs.get(other)).toMatchObject({ phase: "runnable" });
  expect((await client.runs.list({ name: "idle" })).runs.length).toBeGreaterThan(0);
  expect(await client.startMany(idle, [{ input: 1 }, { input: 2 }])).toHaveLength(2);
  await client.signal(other, "go");
  expect(await client.runs.cancel(other)).toEqual({ cancelled: 1 });
  await client.limits.list();
}

it.each(Object.keys(waits))(
  "many callers that %s while an open transaction holds it delay nobody else",
  async (what) => {
    const { call, lock } = await waits[what]!();
    const holder = await database.connect();
    await holder.query("begin");
    await holder.query(...(lock as [string, unknown[]?]));
    let answered = 0;
    const waiting = Array.from({ length: many }, async (_, n) => {
      await call(n);
      answered++;
    });
    const all = Promise.all(waiting);
    all.catch(() => {});
    await until("some of them wait in the database", async () => {
      const rows = await sql(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length > 0;
    });
    await others(pawl);
    if (database.server !== undefined) {
      expect((await fetch(new URL("/readyz", database.server))).status).toBe(200);
    }
    expect(answered).toBe(0);
    await holder.query("commit");
    await all;
    expect(answered).toBe(many);
  },
  60_000,
);
