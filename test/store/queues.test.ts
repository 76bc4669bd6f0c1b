import { startLocalPostgres } from "@pawl/local-postgres";
import { migrate } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { PostgresStore } from "../../packages/pawl/dist/store/postgres/postgres-store.js";
import type { Received, ReceiveRequest } from "../../packages/pawl/dist/store/queue-store.js";
import { testDatabase } from "../support/database.js";
import { claim, register, start } from "../support/store.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { store, sql } = database;

let lastReceipt = 1_000;
const request = (queue: string, given: Partial<ReceiveRequest> = {}): ReceiveRequest => ({
  queue,
  limit: 10,
  receipt: String(++lastReceipt),
  visibilityMs: 60_000,
  maxReceives: 10,
  match: null,
  floor: null,
  after: null,
  ...given,
});
const send = (queue: string, count: number, group: string | null = null) =>
  store.send(
    Array.from({ length: count }, (_, n) => {
      return { queue, body: String(n), delayMs: null, group, dedupKey: null };
    }),
    { patient: true },
  );

describe("messages and runs", () => {
  it("of queues with the same name do not meet", async () => {
    await register(database, "worker");
    const [message] = await send("default", 1, "key");
    const [runId] = await start(database, { partitionKey: "~default:key", idempotencyKey: "k" });
    const [group] = await sql<{ key: string }>(
      "select partition_key as key from runs where kind = 'message'",
    );
    await expect(start(database, { partitionKey: group!.key })).rejects.toThrow("control character");
    const claimed = await claim(database);
    expect(claimed.runs.map((run) => run.runId)).toEqual([runId]);
    const { messages } = await store.receive(request("default"));
    expect(messages.map(({ id }) => id)).toEqual([message!.id]);
  });

  it("a message is not got, listed, counted, cancelled or signalled as a run", async () => {
    const [message] = await send("hidden", 1);
    const { id } = message!;
    expect(await store.get([id])).toEqual([]);
    expect((await store.ended([id])).runs[0]?.phase).toBeNull();
    expect((await store.cancel(id, { reason: null, cascade: false })).verdict).toBe("not_found");
    const { verdicts } = await store.signal([{ runId: id, name: "go", payload: "{}", dedupKey: null }], {
      patient: true,
    });
    expect(verdicts).toEqual(["not_found"]);
    expect(await store.why(id)).toBeNull();
    expect(await sql("select 1 from workflow_run where run_id = $1", [id])).toEqual([]);
  });

  it("a message that nobody has received for long is not parked as unserved", async () => {
    await send("patient", 3, "g");
    const { messages } = await store.receive(request("patient"));
    await sql("update runs set eligible_at = eligible_at - interval '1 hour' where queue = 'patient'");
    await store.ack(messages.map(({ id }) => ({ queue: "patient", id, receipt: String(lastReceipt) })));
    await store.expire(100, null);
    await store.recover({ limit: 100, repairs: true, marks: null });
    expect((await store.receive(request("patient"))).messages).toHaveLength(1);
  });
});

describe("receiving", () => {
  it("walks over at most a thousand messages that do not match, and goes on behind them", async () => {
    await send("walk", 1_000);
    await send("walk", 1_000);
    await store.send([{ queue: "walk", body: '"x"', delayMs: null, group: null, dedupKey: null }], {
      patient: true,
    });
    let after: ReceiveRequest["after"] = null;
    let calls = 0;
    for (;;) {
      const received = await store.receive(request("walk", { match: '"x"', after }));
      calls++;
      if (received.messages.length > 0) break;
      expect(received.after).not.toBeNull();
      after = received.after;
    }
    expect(calls).toBeGreaterThan(1);
  });

  it("gives at most 16 MiB at once, and at least one message", async () => {
    const body = JSON.stringify("x".repeat(6 * 1024 * 1024));
    await sql("alter table runs alter input set storage external");
    for (let n = 0; n < 4; n++) {
      await store.send([{ queue: "large", body, delayMs: null, group: null, dedupKey: null }], {
        patient: true,
      });
    }
    const first = await store.receive(request("large"));
    expect([first.messages.length, first.more]).toEqual([2, true]);
    expect((await store.receive(request("large"))).messages).toHaveLength(2);
  });

  it("begins at the low-water mark, and finds what is before it when there is nothing behind", async () => {
    await send("floor", 20);
    const first = await store.receive(request("floor"));
    expect(first.floor).not.toBeNull();
    const receipts = first.messages.map(({ id }) => {
      return { queue: "floor", id, receipt: String(lastReceipt), visibilityMs: 0 };
    });
    await store.extend(receipts, { unreceived: true });
    const second = await store.receive(request("floor", { floor: first.floor! + 60_000_000 }));
    expect(second.messages.map(({ id }) => id)).toEqual(first.messages.map(({ id }) => id));
    expect(second.messages[0]?.receives).toBe(1);
  });
});

describe("recover", () => {
  it("makes messages visible whose visibility has ended, and no others", async () => {
    await send("expiring", 2);
    const { messages } = await store.receive(request("expiring", { visibilityMs: 1, limit: 1 }));
    await store.receive(request("expiring"));
    await until("it is visible", async () => {
      await store.recover({ limit: 100, repairs: false, marks: null });
      const [stats] = await store.queueStats("expiring");
      return stats!.visible === 1 && stats!.inFlight === 1;
    });
    expect((await store.receive(request("expiring"))).messages.map(({ id }) => id)).toEqual([
      messages[0]!.id,
    ]);
  });

  it("one message that cannot be written does not keep the others", async () => {
    const sent = await send("broken", 3);
    await store.receive(request("broken"));
    await sql("update runs set lease_expires_at = clock_timestamp() where queue = 'broken'");
    await sql(
      `alter table runs add constraint broken check (id <> ${sent[1]!.id} or status = 'executing') not valid`,
    );
    await store.expire(100, null);
    const [stats] = await store.queueStats("broken");
    expect(stats).toMatchObject({ visible: 2, inFlight: 1 });
    await sql("alter table runs drop constraint broken");
    await store.expire(100, null);
    expect((await store.queueStats("broken"))[0]).toMatchObject({ visible: 3, inFlight: 0 });
  });

  it("publications are forgotten after a day", async () => {
    await store.publish("once", "1", "key");
    expect((await store.publish("once", "1", "key")).created).toBe(false);
    await sql("update publications set expires_at = expires_at - interval '25 hours'");
    await store.expire(100, null);
    expect((await store.publish("once", "1", "key")).created).toBe(true);
  });
});

describe("a crash of the database", () => {
  it("loses no message that was sent and brings back none that was acknowledged; a receipt that it lost acknowledges nothing", async () => {
    // The log is written out only when a commit demands it, so that an immediate shutdown reliably loses a receive.
    const server = await startLocalPostgres({
      settings: { wal_writer_delay: "10s", wal_writer_flush_after: "1GB" },
    });
    afterAll(() => server.stop());
    await migrate({ url: server.url });
    const crashing = new PostgresStore({ url: server.url, schema: "pawl" }, { connections: 1 });
    afterAll(() => crashing.close());
    const sent = await crashing.send(
      [1, 2].map((n) => ({ queue: "q", body: String(n), delayMs: null, group: "g", dedupKey: null })),
      { patient: true },
    );
    const first = request("q");
    await crashing.receive(first);
    await crashing.ack([{ queue: "q", id: sent[0]!.id, receipt: first.receipt }]);
    let lost = request("q");
    let found: Received["messages"] = [];
    for (let tries = 0; tries < 10 && found.length === 0; tries++) {
      lost = request("q");
      expect((await crashing.receive(lost)).messages).toMatchObject([{ id: sent[1]!.id }]);
      await server.restart({ mode: "immediate" });
      await until("the server answers", () =>
        crashing.receive(request("q")).then(
          ({ messages }) => {
            found = messages;
            return true;
          },
          () => false,
        ),
      );
      // Something else had the log written out: once more.
      const kept = { queue: "q", id: sent[1]!.id, receipt: lost.receipt, visibilityMs: 0 };
      await crashing.extend([kept], { unreceived: true });
    }
    expect(found).toMatchObject([{ id: sent[1]!.id, receives: 1 }]);
    const { done } = await crashing.ack([{ queue: "q", id: sent[1]!.id, receipt: lost.receipt }]);
    expect(done.size).toBe(0);
  });
});
