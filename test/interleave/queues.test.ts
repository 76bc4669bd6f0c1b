/**
 * Every pair of what happens to messages, one in the middle of the other's transaction, on messages of one group and with one dedup key.
 * Whatever the order and however the first one ends: no deadlock, no message lost or doubled, one of a group in flight at a time, in order, and in
 * the end every message is received and acknowledged once.
 */

import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { type End, interleave } from "./barrier.js";
import { type Connection, connectionsTo } from "./connections.js";

const database = await testDatabase();
const connections = await connectionsTo(database);
const barrier = {
  first: await connections.open(),
  second: await connections.open(),
  observer: await connections.open(),
};

let lastReceipt = 1_000;
let lastQueue = 0;

interface Scene {
  readonly queue: string;
  /** Of the group, in order; the first is in flight under `receipt`, and its visibility has ended. */
  readonly ids: readonly string[];
  readonly receipt: string;
  /** Acknowledged, by transactions that were committed. */
  readonly acked: string[];
  readonly published: boolean[];
}

const receiveAll = (on: Connection, queue: string, limit = 10) =>
  on.store.receive({
    queue,
    limit,
    receipt: String(++lastReceipt),
    visibilityMs: 60_000,
    maxReceives: 100,
    match: null,
    floor: null,
    after: null,
  });

const toMessage = (queue: string, n: number) => ({
  queue,
  body: String(n),
  delayMs: null,
  group: "g",
  dedupKey: `key ${n}`,
});

async function setUp(): Promise<Scene> {
  const queue = `q${++lastQueue}`;
  const on = barrier.observer;
  const sent = await on.store.send(
    [1, 2, 3].map((n) => toMessage(queue, n)),
    { patient: true },
  );
  await on.store.subscribe(`topic.${queue}`, { type: "queue", queue }, null);
  await receiveAll(on, queue);
  const receipt = String(lastReceipt);
  await on.query(
    "update runs set lease_expires_at = clock_timestamp() where queue = $1 and status = 'executing'",
    [queue],
  );
  return { queue, ids: sent.map(({ id }) => id), receipt, acked: [], published: [] };
}

type Operation = (on: Connection, scene: Scene) => Promise<() => void>;

/** Each answers what is to be noted if its transaction is committed. */
const operations: Record<string, Operation> = {
  send: async (on, { queue }) => {
    await on.store.send([toMessage(queue, 1), toMessage(queue, 4)], { patient: true });
    return () => {};
  },
  receive: async (on, { queue }) => {
    const { messages } = await receiveAll(on, queue);
    expect(messages.length).toBeLessThanOrEqual(1);
    return () => {};
  },
  ack: async (on, { queue, ids, receipt, acked }) => {
    const { done } = await on.store.ack(ids.map((id) => ({ queue, id, receipt })).toReversed());
    return () => void acked.push(...[...done].map((key) => key.split("/")[0]!));
  },
  "give back": async (on, { queue, ids, receipt }) => {
    await on.store.extend([{ queue, id: ids[0]!, receipt, visibilityMs: 0 }], { unreceived: false });
    return () => {};
  },
  extend: async (on, { queue, ids, receipt }) => {
    await on.store.extend([{ queue, id: ids[0]!, receipt, visibilityMs: 60_000 }], { unreceived: false });
    return () => {};
  },
  expire: async (on) => {
    await on.store.expire(100, null);
    return () => {};
  },
  publish: async (on, { queue, published }) => {
    const { created } = await on.store.publish(`topic.${queue}`, '"published"', "once");
    return () => void published.push(created);
  },
};

/** Receives and acknowledges until nothing is left, whatever is in flight still; answers the messages of the group, in order. */
async function drain({ queue, acked }: Scene): Promise<string[]> {
  const on = barrier.observer;
  const order: string[] = [];
  for (let idle = 0; idle < 3;) {
    await on.query(
      "update runs set lease_expires_at = clock_timestamp() where queue = $1 and lease_expires_at is not null",
      [queue],
    );
    await on.store.expire(100, null);
    const { messages } = await receiveAll(on, queue);
    idle = messages.length === 0 ? idle + 1 : 0;
    expect(messages.filter(({ group }) => group === "g").length).toBeLessThanOrEqual(1);
    const receipt = String(lastReceipt);
    const { done } = await on.store.ack(messages.map(({ id }) => ({ queue, id, receipt })));
    expect(done.size).toBe(messages.length);
    order.push(...messages.flatMap(({ id, group }) => (group === "g" ? [id] : [])));
    acked.push(...messages.map(({ id }) => id));
  }
  return order;
}

describe.each(["commits", "rolls back"] satisfies End[])("when the first one %s", (end) => {
  const names = Object.keys(operations);
  const pairs = names.flatMap((first) => names.map((second) => [first, second] as const));

  it.each(pairs)("the laws hold for %s and then %s", async (first, second) => {
    const scene = await setUp();
    const met = await interleave(barrier, end, {
      first: () => operations[first]!(barrier.first, scene),
      second: () => operations[second]!(barrier.second, scene),
    });
    if (end === "commits") met.first();
    met.second();
    const order = await drain(scene);
    expect(new Set(scene.acked).size, "each was acknowledged once").toBe(scene.acked.length);
    for (const id of scene.ids) expect(scene.acked).toContain(id);
    expect(order, "as they were sent").toEqual(order.toSorted((a, b) => Number(BigInt(a) - BigInt(b))));
    const left = await barrier.observer.query("select id from runs where queue = $1", [scene.queue]);
    expect(left).toEqual([]);
    expect(scene.published.filter(Boolean).length).toBeLessThanOrEqual(1);
    expect(connections.errors).toEqual([]);
  });
});

it("and there was no deadlock", async () => {
  expect(await connections.deadlocks()).toBe(0);
});
