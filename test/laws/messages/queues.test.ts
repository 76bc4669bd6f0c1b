import type { Message } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase, type TestDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl } = testEngine(database);

let queues = 0;
const newQueue = (): string => `orders-${++queues}`;
const bodies = (messages: readonly Message[]): unknown[] => messages.map(({ body }) => body);

/** The visibility of all messages in flight of a queue has ended, and that was noticed. */
async function endVisibility({ sql, store }: TestDatabase, queue: string): Promise<void> {
  await sql(
    "update runs set lease_expires_at = clock_timestamp() - interval '1 second' where queue = $1 and lease_expires_at is not null",
    [queue],
  );
  await store.expire(1_000, null);
}

describe("sending and receiving", () => {
  it("gives what was sent, oldest first, until it is acked", async () => {
    const queue = newQueue();
    const sent = await pawl.queues.sendMany(queue, [{ body: { n: 1 } }, { body: "two" }, { body: null }]);
    expect(sent.map(({ created }) => created)).toEqual([true, true, true]);
    const messages = await pawl.queues.receive(queue);
    expect(bodies(messages)).toEqual([{ n: 1 }, "two", null]);
    expect(messages.map(({ id }) => id)).toEqual(sent.map(({ id }) => id));
    expect(messages[0]).toMatchObject({ receives: 1, group: null, from: null });
    expect(messages[0]?.sentAt).toBeInstanceOf(Date);
    expect(await pawl.queues.ack(queue, messages)).toEqual({ acked: 3, refused: [] });
    expect(await pawl.queues.stats(queue)).toEqual({
      queue,
      visible: 0,
      inFlight: 0,
      delayed: 0,
      oldestMs: null,
    });
  });

  it("gives a message to one receiver alone", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(
      queue,
      Array.from({ length: 100 }, (_, n) => ({ body: n })),
    );
    const received = await Promise.all(
      Array.from({ length: 20 }, () => pawl.queues.receive<number>(queue, { max: 10 })),
    );
    const all = received.flat().map(({ body }) => body);
    expect(all.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });

  it("gives at most `max`", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(
      queue,
      Array.from({ length: 5 }, (_, n) => ({ body: n })),
    );
    expect(bodies(await pawl.queues.receive(queue, { max: 2 }))).toEqual([0, 1]);
    expect(bodies(await pawl.queues.receive(queue, { max: 100 }))).toEqual([2, 3, 4]);
  });

  it("answers at once and with nothing if there is nothing and nobody waits", async () => {
    expect(await pawl.queues.receive(newQueue())).toEqual([]);
  });

  it("wakes who waits when a message is sent", async () => {
    const queue = newQueue();
    const waiting = pawl.queues.receive(queue, { wait: "30s" });
    await pawl.queues.send(queue, "here");
    expect(bodies(await waiting)).toEqual(["here"]);
  });

  it("answers who waits with nothing once the time is over", async () => {
    expect(await pawl.queues.receive(newQueue(), { wait: 30 })).toEqual([]);
  });

  it("shows a delayed message when its time has come, and not before", async () => {
    const queue = newQueue();
    await pawl.queues.send(queue, "late", { delay: 300 });
    expect(await pawl.queues.receive(queue)).toEqual([]);
    expect(await pawl.queues.stats(queue)).toMatchObject({ visible: 0, delayed: 1 });
    expect(bodies(await pawl.queues.receive(queue, { wait: "30s" }))).toEqual(["late"]);
  });

  it("a receiver that leaves gets nothing, and the message is another's", async () => {
    const queue = newQueue();
    const leaving = new AbortController();
    const left = pawl.queues.receive(queue, { wait: "30s", signal: leaving.signal });
    leaving.abort();
    expect(await left).toEqual([]);
    await pawl.queues.send(queue, "stays");
    const [message] = await pawl.queues.receive(queue, { wait: "30s" });
    expect(message).toMatchObject({ body: "stays", receives: 1 });
  });

  it("knows how many messages there are", async () => {
    const queue = newQueue();
    const items = ["a", "b", "c", "d"].map((body) => ({ body, group: body === "c" ? "b" : body }));
    await pawl.queues.sendMany(queue, [...items, { body: "e", delay: "1h" }]);
    await pawl.queues.receive(queue, { max: 2 });
    const stats = await pawl.queues.stats(queue);
    expect(stats).toMatchObject({ queue, visible: 2, inFlight: 2, delayed: 1 });
    expect(stats.oldestMs).toBeGreaterThanOrEqual(0);
    expect(await pawl.queues.list()).toContainEqual({ ...stats, oldestMs: expect.any(Number) });
  });
});

describe("dedup keys", () => {
  it("a second message with the same key is not sent, as long as the first is there", async () => {
    const queue = newQueue();
    const first = await pawl.queues.send(queue, 1, { dedupKey: "k" });
    expect(await pawl.queues.send(queue, 2, { dedupKey: "k" })).toEqual({ id: first.id, created: false });
    const messages = await pawl.queues.receive(queue);
    expect(bodies(messages)).toEqual([1]);
    expect(await pawl.queues.send(queue, 3, { dedupKey: "k" })).toEqual({ id: first.id, created: false });
    await pawl.queues.ack(queue, messages);
    expect(await pawl.queues.send(queue, 4, { dedupKey: "k" })).toMatchObject({ created: true });
  });

  it("are those of one queue, and count within one call", async () => {
    const [queue, other] = [newQueue(), newQueue()];
    const [a, b, c] = await pawl.queues.sendMany(queue, [
      { body: 1, dedupKey: "k" },
      { body: 2, dedupKey: "k" },
      { body: 3 },
    ]);
    expect(a?.created).toBe(true);
    expect(b).toEqual({ id: a?.id, created: false });
    expect(c?.created).toBe(true);
    expect(await pawl.queues.send(other, 4, { dedupKey: "k" })).toMatchObject({ created: true });
  });

  it("of concurrent senders one wins, and all learn its id", async () => {
    const queue = newQueue();
    const sent = await Promise.all(
      Array.from({ length: 20 }, (_, n) => pawl.queues.send(queue, n, { dedupKey: "k" })),
    );
    expect(sent.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(1);
  });
});

describe("receipts", () => {
  it("a message whose visibility ended is received again, and the old receipt is refused", async () => {
    const queue = newQueue();
    await pawl.queues.send(queue, "again");
    const [first] = await pawl.queues.receive(queue);
    await endVisibility(database, queue);
    const [second] = await pawl.queues.receive(queue, { wait: "30s" });
    expect(second).toMatchObject({ id: first!.id, receives: 2 });
    expect(await pawl.queues.ack(queue, first!)).toEqual({ acked: 0, refused: [first!.id] });
    expect(await pawl.queues.extend(queue, first!, "1m")).toEqual({ extended: 0, refused: [first!.id] });
    expect(await pawl.queues.ack(queue, second!)).toEqual({ acked: 1, refused: [] });
  });

  it("a receipt whose visibility ended still acks what nobody has received since", async () => {
    const queue = newQueue();
    await pawl.queues.send(queue, "late");
    const [message] = await pawl.queues.receive(queue);
    await endVisibility(database, queue);
    expect(await pawl.queues.ack(queue, message!)).toEqual({ acked: 1, refused: [] });
    expect(await pawl.queues.receive(queue)).toEqual([]);
  });

  it("of two who ack at the same time, the one whose receipt is old is refused", async () => {
    const queue = newQueue();
    await pawl.queues.send(queue, "again");
    const [first] = await pawl.queues.receive(queue);
    await endVisibility(database, queue);
    const [second] = await pawl.queues.receive(queue);
    const [old, current] = await Promise.all([
      pawl.queues.ack(queue, first!),
      pawl.queues.ack(queue, second!),
    ]);
    expect(old).toEqual({ acked: 0, refused: [first!.id] });
    expect(current).toEqual({ acked: 1, refused: [] });
  });

  it("visibility ends by itself, without a worker", async () => {
    const queue = newQueue();
    await pawl.queues.send(queue, "soon");
    const [first] = await pawl.queues.receive(queue, { visibility: 50 });
    const [second] = await pawl.queues.receive(queue, { wait: "30s" });
    expect(second).toMatchObject({ id: first!.id, receives: 2 });
  });

  it("visibility 0 gives a message back at once, in its place, and ends the receipt", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(queue, [{ body: 1 }, { body: 2 }]);
    const [first] = await pawl.queues.receive(queue, { max: 1 });
    const waiting = pawl.queues.receive(queue, { max: 1, wait: "30s", match: 1 });
    expect(await pawl.queues.extend(queue, first!, 0)).toEqual({ extended: 1, refused: [] });
    expect(await waiting).toMatchObject([{ id: first!.id, receives: 2 }]);
    expect(await pawl.queues.ack(queue, first!)).toEqual({ acked: 0, refused: [first!.id] });
  });

  it("an extended message stays invisible", async () => {
    const queue = newQueue();
    await pawl.queues.send(queue, "long");
    const [message] = await pawl.queues.receive(queue, { visibility: 200 });
    expect(await pawl.queues.extend(queue, message!, "1h")).toEqual({ extended: 1, refused: [] });
    const [row] = await database.sql<{ long: boolean }>(
      "select lease_expires_at > clock_timestamp() + interval '59 minutes' as long from runs where id = $1",
      [message!.id],
    );
    expect(row?.long).toBe(true);
  });

  it("a second ack, one of another queue and one with a made-up receipt are refused", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(queue, [{ body: 1 }, { body: 2 }]);
    const [first, second] = await pawl.queues.receive(queue);
    expect(await pawl.queues.ack(queue, [first!, first!])).toEqual({ acked: 1, refused: [] });
    expect(await pawl.queues.ack(queue, first!)).toMatchObject({ acked: 0 });
    expect(await pawl.queues.ack(newQueue(), second!)).toMatchObject({ acked: 0 });
    expect(await pawl.queues.ack(queue, { id: second!.id, receipt: "12345" })).toMatchObject({ acked: 0 });
    expect(await pawl.queues.ack(queue, second!)).toMatchObject({ acked: 1 });
  });
});

describe("groups", () => {
  it("a group is received in order, one at a time, beside others", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(
      queue,
      ["a1", "a2", "b1", "a3", "b2"].map((body) => ({ body, group: body[0]! })),
    );
    const order: unknown[][] = [];
    for (;;) {
      const messages = await pawl.queues.receive(queue);
      if (messages.length === 0) break;
      order.push(bodies(messages));
      expect(await pawl.queues.receive(queue), "while one of each is in flight").toEqual([]);
      await pawl.queues.ack(queue, messages);
    }
    expect(order).toEqual([["a1", "b1"], ["a2", "b2"], ["a3"]]);
  });

  it("the first of a group that comes back is the first again", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(queue, [
      { body: 1, group: "g" },
      { body: 2, group: "g" },
    ]);
    const [first] = await pawl.queues.receive(queue);
    await pawl.queues.receive(queue);
    await endVisibility(database, queue);
    const [again] = await pawl.queues.receive(queue);
    expect(again).toMatchObject({ id: first!.id, group: "g", receives: 2 });
    await pawl.queues.extend(queue, again!, 0);
    expect(await pawl.queues.receive(queue)).toMatchObject([{ id: first!.id, receives: 3 }]);
  });

  it("an ack wakes who waits for the next of the group", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(queue, [
      { body: 1, group: "g" },
      { body: 2, group: "g" },
    ]);
    const first = await pawl.queues.receive(queue);
    const waiting = pawl.queues.receive(queue, { wait: "30s" });
    await pawl.queues.ack(queue, first);
    expect(bodies(await waiting)).toEqual([2]);
  });

  it("stay in order under many receivers", async () => {
    const queue = newQueue();
    const groups = ["a", "b", "c"];
    await pawl.queues.sendMany(
      queue,
      Array.from({ length: 120 }, (_, n) => ({ body: n, group: groups[n % 3]! })),
    );
    const seen = new Map<string, number[]>(groups.map((group) => [group, []]));
    const inFlight = new Set<string>();
    let left = 120;
    const consume = async (): Promise<void> => {
      while (left > 0) {
        for (const message of await pawl.queues.receive<number>(queue, { max: 2, wait: 100 })) {
          expect(inFlight.has(message.group!), `two of ${message.group} in flight`).toBe(false);
          inFlight.add(message.group!);
          seen.get(message.group!)!.push(message.body);
          await Promise.resolve();
          inFlight.delete(message.group!);
          left--;
          expect(await pawl.queues.ack(queue, message)).toEqual({ acked: 1, refused: [] });
        }
      }
    };
    await Promise.all(Array.from({ length: 6 }, consume));
    for (const numbers of seen.values()) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect([...seen.values()].flat()).toHaveLength(120);
  });

  it("mean nothing to each other in different queues", async () => {
    const [queue, other] = [newQueue(), newQueue()];
    await pawl.queues.send(queue, 1, { group: "g" });
    await pawl.queues.send(other, 2, { group: "g" });
    expect(await pawl.queues.receive(queue)).toHaveLength(1);
    expect(await pawl.queues.receive(other)).toHaveLength(1);
  });
});

describe("match", () => {
  it("gives messages whose body contains it, and leaves the others", async () => {
    const queue = newQueue();
    await pawl.queues.sendMany(
      queue,
      [1, 2, 3, 4].map((n) => ({ body: { n, kind: n % 2 === 0 ? "even" : "odd" } })),
    );
    const even = await pawl.queues.receive(queue, { match: { kind: "even" } });
    expect(bodies(even)).toEqual([
      { n: 2, kind: "even" },
      { n: 4, kind: "even" },
    ]);
    expect(await pawl.queues.receive(queue)).toHaveLength(2);
  });

  it("finds what lies behind thousands that do not match", async () => {
    const queue = newQueue();
    for (let batch = 0; batch < 13; batch++) {
      await pawl.queues.sendMany(
        queue,
        Array.from({ length: 1_000 }, () => ({ body: "other" })),
      );
    }
    await pawl.queues.send(queue, "wanted");
    let found: Message[] = [];
    await until("it is found", async () => {
      found = await pawl.queues.receive(queue, { match: "wanted" });
      return found.length > 0;
    });
    expect(bodies(found)).toEqual(["wanted"]);
    expect(await pawl.queues.receive(queue, { match: "wanted", wait: 50 })).toEqual([]);
    expect(await pawl.queues.receive(queue, { max: 1 })).toHaveLength(1);
  });
});

describe("dead letters", () => {
  it("a message that was received too often moves to the dead-letter queue", async () => {
    const queue = newQueue();
    const { id } = await pawl.queues.send(queue, { poison: true }, { group: "g", dedupKey: "k" });
    await pawl.queues.send(queue, "next", { group: "g" });
    for (let turn = 1; turn <= 3; turn++) {
      const [message] = await pawl.queues.receive(queue, { maxReceives: 3 });
      expect(message).toMatchObject({ id, receives: turn });
      await endVisibility(database, queue);
    }
    const [next] = await pawl.queues.receive(queue, { maxReceives: 3, wait: "30s" });
    expect(next).toMatchObject({ body: "next", receives: 1 });
    const [dead] = await pawl.queues.receive(`${queue}-dead`);
    expect(dead).toMatchObject({ id, body: { poison: true }, group: "g", receives: 1, from: queue });
    expect(await pawl.queues.send(queue, "anew", { dedupKey: "k" })).toMatchObject({ created: true });
    expect(await pawl.queues.ack(`${queue}-dead`, dead!)).toMatchObject({ acked: 1 });
  });

  it("what is in a dead-letter queue stays there, however often it is received", async () => {
    const queue = `${newQueue()}-dead`;
    await pawl.queues.send(queue, "dead");
    for (let turn = 1; turn <= 3; turn++) {
      expect(await pawl.queues.receive(queue, { maxReceives: 1 })).toMatchObject([{ receives: turn }]);
      await endVisibility(database, queue);
    }
  });
});

describe("what is refused", () => {
  it.each([
    ["a queue with a wrong name", () => pawl.queues.send("Orders", 1), /name of a queue/],
    [
      "a queue whose dead letters would have no name",
      () => pawl.queues.send("x".repeat(44), 1),
      /at most 43/,
    ],
    ["a body that JSON cannot carry", () => pawl.queues.send("orders", 1n), /BigInt/],
    ["too large a body", () => pawl.queues.send("orders", "x".repeat(1_100_000)), /limit is 1048576/],
    ["too many messages", () => pawl.queues.sendMany("orders", new Array(1_001).fill({ body: 1 })), /1000/],
    ["an item without a body", () => pawl.queues.sendMany("orders", [{} as { body: unknown }]), /message 0/],
    ["too long a wait", () => pawl.queues.receive("orders", { wait: "31s" }), /30 seconds/],
    ["no visibility", () => pawl.queues.receive("orders", { visibility: 0 }), /visibility/],
    ["too many at once", () => pawl.queues.receive("orders", { max: 101 }), /from 1 to 100/],
    ["what is no message", () => pawl.queues.ack("orders", { id: "x", receipt: "1" }), /queues.ack takes/],
  ])("%s", async (_, call, message) => {
    await expect(call()).rejects.toThrow(message);
  });
});
