import { InvalidOption, RunNotFound } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl } = testEngine(database);

let names = 0;
const newName = (): string => `t${++names}`;

const startedOf = async (name: string): Promise<unknown[]> =>
  (await pawl.runs.list({ name, limit: 100 })).runs.map(({ input }) => input);

describe("publishing", () => {
  it("starts a run, sends a message and starts a delivery, for each that wants it", async () => {
    const topic = newName();
    await pawl.subscriptions.create(topic, { type: "workflow", name: `${topic}-flow` });
    await pawl.subscriptions.create(topic, { type: "queue", queue: `${topic}-queue` });
    await pawl.subscriptions.create(topic, { type: "http", url: "http://127.0.0.1:1/hook" });
    expect(await pawl.topics.publish(topic, { n: 1 })).toEqual({
      runs: 1,
      messages: 1,
      deliveries: 1,
      created: true,
    });
    expect(await startedOf(`${topic}-flow`)).toEqual([{ n: 1 }]);
    expect(await pawl.queues.receive(`${topic}-queue`)).toMatchObject([{ body: { n: 1 } }]);
    expect(await startedOf("pawl-delivery")).toContainEqual(
      expect.objectContaining({ topic, body: { n: 1 } }),
    );
  });

  it("to a topic without subscribers is fine", async () => {
    expect(await pawl.topics.publish(newName(), null)).toMatchObject({
      runs: 0,
      messages: 0,
      deliveries: 0,
    });
  });

  it.each([
    ["a.b", ["a.b"], ["a", "a.c", "a.b.c", "b.a.b"]],
    ["a.*", ["a.b", "a.c"], ["a", "a.b.c", "b.a"]],
    ["*.b", ["a.b", "c.b"], ["b", "a.b.b"]],
    ["a.*.c", ["a.b.c"], ["a.c", "a.b.b.c"]],
    ["a.#", ["a", "a.b", "a.b.c"], ["b", "b.a", "ab"]],
    ["*.b.#", ["a.b", "c.b.d.e"], ["b", "a.c"]],
    ["#", ["a", "a.b.c"], []],
  ])("%s wants %j and not %j", async (pattern, wanted, others) => {
    const queue = newName();
    const { id } = await pawl.subscriptions.create(pattern, { type: "queue", queue });
    for (const topic of [...wanted, ...others]) await pawl.topics.publish(topic, topic);
    const messages = await pawl.queues.receive(queue, { max: 100 });
    expect(messages.map(({ body }) => body)).toEqual(wanted);
    await pawl.subscriptions.delete(id);
  });

  it("wakes who waits for a message", async () => {
    const topic = newName();
    await pawl.subscriptions.create(topic, { type: "queue", queue: topic });
    const waiting = pawl.queues.receive(topic, { wait: "30s" });
    await pawl.topics.publish(topic, "news");
    expect(await waiting).toMatchObject([{ body: "news" }]);
  });

  it("with the same dedup key publishes once, also at the same time, and answers the same", async () => {
    const topic = newName();
    await pawl.subscriptions.create(topic, { type: "queue", queue: topic });
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, n) => pawl.topics.publish(topic, n, { dedupKey: "k" })),
    );
    expect(all.filter(({ created }) => created)).toHaveLength(1);
    for (const published of all) expect(published).toMatchObject({ messages: 1 });
    const messages = await pawl.queues.receive(topic);
    expect(messages).toHaveLength(1);
    await pawl.queues.ack(topic, messages);
    expect(await pawl.topics.publish(topic, "again", { dedupKey: "k" })).toMatchObject({ created: false });
    expect(await pawl.topics.publish(topic, "other", { dedupKey: "l" })).toMatchObject({ created: true });
    expect(await pawl.queues.receive(topic)).toMatchObject([{ body: "other" }]);
  });

  it("is all or nothing", async () => {
    const topic = newName();
    await pawl.subscriptions.create(topic, { type: "queue", queue: topic });
    await pawl.subscriptions.create(topic, { type: "workflow", name: `${topic}-flow` });
    await database.sql(
      "alter table runs add constraint no_flow check (name <> $$" + topic + "-flow$$) not valid",
    );
    await expect(pawl.topics.publish(topic, 1)).rejects.toThrow();
    expect(await pawl.queues.receive(topic)).toEqual([]);
    await database.sql("alter table runs drop constraint no_flow");
  });
});

describe("subscriptions", () => {
  it("are listed with their pattern and target, and never with a secret", async () => {
    const pattern = `${newName()}.*`;
    const secret = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0";
    const target = { type: "http", url: "http://127.0.0.1:1/a?b=c" } as const;
    const { id, created } = await pawl.subscriptions.create(pattern, { ...target, secret });
    expect(created).toBe(true);
    const [listed] = await pawl.subscriptions.list({ pattern });
    expect(listed).toEqual({ id, pattern, target, hasSecret: true, createdAt: expect.any(Date) });
    expect(JSON.stringify(await pawl.subscriptions.list())).not.toContain(secret);
    await pawl.topics.publish(pattern.replace("*", "x"), 1);
    const runs = await database.sql("select input::text, state::text from runs where name = 'pawl-delivery'");
    expect(JSON.stringify(runs)).not.toContain("whsec_");
  });

  it("of the same pattern and target are one", async () => {
    const pattern = newName();
    const target = { type: "queue", queue: "same" } as const;
    const first = await pawl.subscriptions.create(pattern, target);
    expect(await pawl.subscriptions.create(pattern, target)).toEqual({ id: first.id, created: false });
    expect(await pawl.subscriptions.list({ pattern })).toHaveLength(1);
  });

  it("keep their secret when they are made again without one, and take another", async () => {
    const pattern = newName();
    const target = { type: "http", url: "http://127.0.0.1:1/again" } as const;
    const secretOf = async () =>
      (await database.sql("select secret from subscriptions where pattern = $1", [pattern]))[0]!["secret"];
    const [first, second] = ["first-of-24-characters-!", "second-of-24-characters!"] as const;
    await pawl.subscriptions.create(pattern, { ...target, secret: first });
    expect(await pawl.subscriptions.create(pattern, target)).toMatchObject({ created: false });
    expect(await secretOf()).toBe(first);
    await pawl.subscriptions.create(pattern, { ...target, secret: second });
    expect(await secretOf()).toBe(second);
    expect(await pawl.subscriptions.list({ pattern })).toMatchObject([{ hasSecret: true }]);
  });

  it("get nothing any more once they are deleted", async () => {
    const topic = newName();
    const { id } = await pawl.subscriptions.create(topic, { type: "queue", queue: topic });
    await pawl.subscriptions.delete(id);
    expect(await pawl.topics.publish(topic, 1)).toMatchObject({ messages: 0 });
    await expect(pawl.subscriptions.delete(id)).rejects.toThrow(RunNotFound);
    await expect(pawl.subscriptions.delete("none")).rejects.toThrow(RunNotFound);
  });
});

describe("what is refused", () => {
  it.each([
    ["a topic with a wildcard", () => pawl.topics.publish("a.*", 1)],
    [
      "a pattern with # in the middle",
      () => pawl.subscriptions.create("a.#.b", { type: "queue", queue: "q" }),
    ],
    ["half a word and a wildcard", () => pawl.subscriptions.create("a*", { type: "queue", queue: "q" })],
    ["a target of another type", () => pawl.subscriptions.create("a", { type: "mail" } as never)],
    ["a queue that is none", () => pawl.subscriptions.create("a", { type: "queue", queue: "Q" })],
    [
      "a URL of another scheme",
      () => pawl.subscriptions.create("a", { type: "http", url: "file:///etc/passwd" }),
    ],
    [
      "a URL with a password",
      () => pawl.subscriptions.create("a", { type: "http", url: "https://me:pw@example.com" }),
    ],
  ])("%s", async (_, call) => {
    await expect(call()).rejects.toThrow(InvalidOption);
  });

  it.each([
    ["a short secret", "a-text-of-23-characters"],
    ["a secret of 23 bytes", `whsec_${Buffer.alloc(23, "k").toString("base64")}`],
    ["a secret that is no base64", `whsec_${"k".repeat(40)}!`],
    ["a secret with spaces", "a text of more than 24 characters"],
    ["a secret of 257 characters", "k".repeat(257)],
  ])("%s", async (_, secret) => {
    const creating = pawl.subscriptions.create("a", { type: "http", url: "http://127.0.0.1:1/", secret });
    await expect(creating).rejects.toThrow(InvalidOption);
    await expect(creating).rejects.toThrow("24");
    await expect(creating).rejects.not.toThrow(secret);
  });
});
