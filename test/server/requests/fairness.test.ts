/** One caller never stalls the others: what a flood of questions, waits, bodies or listings leaves for everybody else. */
import { connect as dial, type Socket } from "node:net";
import { connect } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { countingProxyTo, sentSince } from "../../support/proxies/counting-proxy.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const proxy = await countingProxyTo(database.directUrl);
const tokens = [
  "one:read+write:one-secret-0123456789",
  "two:read+write:two-secret-0123456789",
  "work:worker:work-secret-0123456789",
];
const { server, url, call: callOpenly } = await testServer({ database: proxy.url, tokens, logger: silent });
const pawl = connect(database.url);
afterAll(() => pawl.close());

type Caller = "one" | "two";
const as = (caller: Caller) => ({ authorization: `Bearer ${caller}-secret-0123456789` });
const call = (caller: Caller, method: string, path: string, body?: unknown) =>
  callOpenly(method, path, body, as(caller));

/** A connection on which texts are sent as they are, and what was answered. */
function open(): { socket: Socket; said: () => string; answers: (status: number) => number } {
  const socket = dial(Number(new URL(url).port), "127.0.0.1");
  afterAll(() => socket.destroy());
  let text = "";
  socket.setEncoding("latin1").on("data", (part: string) => (text += part));
  socket.on("error", () => {});
  const answers = (status: number): number => text.split(`HTTP/1.1 ${status} `).length - 1;
  return { socket, said: () => text, answers };
}

/** How many callers are connected. Keep-alive ones of this test are closed first. */
const connections = (): Promise<number> =>
  new Promise((resolve) => {
    server.app.server.closeIdleConnections();
    server.app.server.getConnections((_error, count) => resolve(count));
  });

const head = (caller: Caller, line: string, more = ""): string =>
  `${line} HTTP/1.1\r\nhost: localhost\r\nauthorization: ${as(caller).authorization}\r\n${more}\r\n`;

describe("readiness", () => {
  it("is asked of the database once, however many ask without a token and without waiting", async () => {
    const sent = sentSince(proxy);
    const { socket, answers } = open();
    socket.write("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(3_000));
    await until("all are answered", () => answers(200) === 3_000);
    // One a second, and what a new connection asks for itself.
    expect(sent().total).toBeLessThan(100);
  });
});

describe("a connection", () => {
  it("has one request under way, however many were sent; the others are answered after it, in order", async () => {
    const { runId } = await pawl.start("endless");
    const sent = sentSince(proxy);
    const { socket, said, answers } = open();
    const wait = head("one", `GET /v1/runs/${runId}?waitSeconds=30`);
    socket.write(wait.repeat(50) + head("one", "GET /v1/runs/999999"));
    await until("the first waits", () => (sent().kinds["results"] ?? 0) > 3);
    expect(sent().kinds["get"]).toBe(1);
    expect((await call("two", "GET", `/v1/runs/${runId}`)).status).toBe(200);

    await pawl.runs.cancel(runId);
    await until("all are answered", () => answers(200) === 50 && answers(404) === 1);
    expect(said().lastIndexOf("HTTP/1.1 200 ")).toBeLessThan(said().indexOf("HTTP/1.1 404 "));
  });

  it("that goes leaves nothing under way of what it had sent", async () => {
    const { runId } = await pawl.start("endless");
    const { socket } = open();
    const sent = sentSince(proxy);
    socket.write(head("one", `GET /v1/runs/${runId}?waitSeconds=30`).repeat(20));
    await until("the first waits", () => (sent().kinds["results"] ?? 0) > 3);
    socket.destroy();
    await until("the server has heard of it", async () => (await connections()) === 0);
    // The first looked once more when its wait was over, and none of the others was begun.
    expect(sent().kinds["get"]).toBeLessThanOrEqual(2);
  });
});

describe("waits", () => {
  const ids = (from: number): string[] => Array.from({ length: 1_000 }, (_, index) => String(from + index));

  it("are bounded per token: beyond its share a token is told to ask again, and others wait as before", async () => {
    const { runId } = await pawl.start("endless");
    await sql(
      `insert into runs (id, status, name, queue, priority, retention, input, eligible_at, inserted_at)
        select id, 'runnable', 'endless', 'default', 0, interval '0', 'null', 'infinity', now()
        from generate_series(1000000, 1009999) id`,
    );
    const waits = Array.from({ length: 11 }, (_, index) => {
      const runIds = ids(1_000_000 + (index % 10) * 1_000);
      return call("one", "POST", "/v1/runs/ended", { runIds, waitSeconds: 30 });
    });
    const answer = await Promise.race(waits);
    expect(answer.status).toBe(429);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(answer.body).toMatchObject({ code: "TooManyRequests" });
    // What does not wait is answered.
    expect((await call("one", "GET", `/v1/runs/${runId}`)).status).toBe(200);

    const other = call("two", "GET", `/v1/runs/${runId}?waitSeconds=30`);
    await pawl.runs.cancel(runId);
    expect((await other).body).toMatchObject({ status: "cancelled" });
    await sql("update runs set status = 'cancelled' where id between 1000000 and 1009999");
    const statuses = (await Promise.all(waits)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([...Array<number>(10).fill(200), 429]);
    const again = { runIds: ids(1_000_000), waitSeconds: 30 };
    expect((await call("one", "POST", "/v1/runs/ended", again)).status).toBe(200);
  });
});

describe("bodies", () => {
  it("are bounded in bytes per token: what is too much is refused before it is read", async () => {
    const batch = head(
      "one",
      "POST /v1/runs/batch",
      `content-type: application/json\r\ncontent-length: ${30 * 1024 * 1024}\r\n`,
    );
    const callers = Array.from({ length: 12 }, open);
    for (const { socket } of callers) socket.write(`${batch}{`);
    const count = (status: number): number => callers.reduce((sum, { answers }) => sum + answers(status), 0);
    await until("all but two are refused", () => count(429) === 10);
    expect(callers.map(({ said }) => said()).join("")).toContain("retry-after: 1");
    // Small bodies are free, and other tokens have a share of their own.
    expect((await call("one", "POST", "/v1/workflows/small/runs", { input: 1 })).status).toBe(201);
    const large = { input: "x".repeat(900_000) };
    expect((await call("one", "POST", "/v1/workflows/large/runs", large)).status).toBe(201);
    expect((await call("two", "POST", "/v1/workflows/large/runs", large)).status).toBe(201);

    for (const { socket } of callers) socket.destroy();
    await until("they have gone", async () => (await connections()) === 0);
    const again = Array.from({ length: 3 }, open);
    for (const { socket } of again) socket.write(`${batch}{`);
    await until("the share was free", () => again.some(({ answers }) => answers(429) === 1));
    expect(again.filter(({ answers }) => answers(429) === 1)).toHaveLength(1);
    for (const { socket } of again) socket.destroy();
  });

  it("of callers without a token take nothing from those who have one", async () => {
    const callers = Array.from({ length: 5 }, open);
    for (const [index, { socket }] of callers.entries()) {
      const more = `authorization: Bearer nobody-${index}\r\ncontent-length: 60000000\r\n`;
      socket.write(`GET /readyz HTTP/1.1\r\nhost: localhost\r\n${more}\r\n{`);
      socket.write(`x`);
    }
    await until("they are answered", () => callers.every(({ answers }) => answers(200) === 1));
    const large = { input: "x".repeat(900_000) };
    expect((await call("two", "POST", "/v1/workflows/large/runs", large)).status).toBe(201);
    for (const { socket } of callers) socket.destroy();
  });

  it("in chunks count as they come", async () => {
    const chunk = `100000\r\n${"x".repeat(0x100000)}\r\n`;
    const type = "content-type: application/json\r\ntransfer-encoding: chunked\r\n";
    const callers = Array.from({ length: 3 }, open);
    for (const { socket } of callers) socket.write(head("one", "POST /v1/runs/batch", type));
    for (let count = 0; count < 31; count++) for (const { socket } of callers) socket.write(chunk);
    await until("one of them is refused", () => callers.some(({ answers }) => answers(429) === 1));
    expect(callers.filter(({ answers }) => answers(429) === 1)).toHaveLength(1);
    for (const { socket } of callers) socket.destroy();
  });
});

describe("values", () => {
  const numbers = Array.from({ length: 100_000 }, () => 1e308);

  it("that would be stored fifty times as long are refused, whichever way they come", async () => {
    const start = await call("one", "POST", "/v1/workflows/digits/runs", { input: numbers });
    expect(start.status).toBe(413);
    expect(start.body).toMatchObject({ code: "PayloadTooLarge", detail: expect.stringContaining("1e308") });
    await expect(pawl.start("digits", numbers)).rejects.toMatchObject({ code: "PayloadTooLarge" });
    await expect(pawl.queues.send("digits", numbers)).rejects.toMatchObject({ code: "PayloadTooLarge" });
    await expect(pawl.topics.publish("digits", numbers)).rejects.toMatchObject({ code: "PayloadTooLarge" });
    const { runId } = await pawl.start("digits", numbers.slice(0, 3_000));
    await expect(pawl.signal(runId, "digits", numbers)).rejects.toMatchObject({ code: "PayloadTooLarge" });
    const text = JSON.stringify(numbers);
    await expect(sql("select pawl.start('digits', $1::jsonb)", [text])).rejects.toMatchObject({
      code: "PW422",
    });
    const signal = sql("select pawl.signal($1, 'digits', $2::jsonb)", [runId, text]);
    await expect(signal).rejects.toMatchObject({ code: "PW422" });
  });

  it("of workers are measured in the same way", async () => {
    const transition = { kind: "done", step: null, result: JSON.stringify(numbers) };
    const commit = {
      runId: "64",
      claimId: "1",
      turn: 0,
      inboxSeq: 0,
      parentId: null,
      partitionKey: null,
      next: null,
    };
    const body = { commits: [{ ...commit, transition }], patient: false };
    const answer = await callOpenly("POST", "/v1/workers/commit", body, {
      authorization: "Bearer work-secret-0123456789",
    });
    expect(answer.status).toBe(413);
    expect(answer.body).toMatchObject({
      detail: expect.stringMatching(/^body\.commits\.0\.transition\.result is/),
    });
  });
});

describe("subscriptions", () => {
  const body = { body: "x".repeat(1_000_000) };
  const subscribe = (caller: Caller, pattern: string, queue: string) =>
    call(caller, "POST", `/v1/topics/${encodeURIComponent(pattern)}/subscriptions`, { type: "queue", queue });

  it("of one token cannot make the publications of another fail", async () => {
    const made = [];
    for (let count = 0; count < 260; count++) {
      made.push((await subscribe("one", count % 2 === 0 ? "#" : "news.*", `q-${count}`)).status);
    }
    expect(made).toEqual([...Array<number>(250).fill(201), ...Array<number>(10).fill(422)]);
    // Again is no second one, and what never meets the others is not counted.
    expect((await subscribe("one", "#", "q-0")).status).toBe(200);
    await sql("delete from subscriptions where pattern = '#' and target ->> 'queue' <> 'q-0'");
    expect((await subscribe("one", "news.*", "q-more")).status).toBe(201);
    await sql("delete from subscriptions");
    for (let count = 0; count < 250; count++) await subscribe("one", "#", `q-${count}`);
    const published = await call("two", "POST", "/v1/topics/news.today/messages", body);
    expect(published.status).toBe(201);
    expect(published.body).toMatchObject({ messages: 250 });
    expect(await sql("select count(*)::int from runs where kind = 'message' and name ~ '^~q-'")).toEqual([
      { count: 250 },
    ]);
  });

  it("beyond what a publication may write are told of, with what to do, and nothing is written", async () => {
    await sql("delete from subscriptions");
    await sql(
      `insert into subscriptions (pattern, target, inserted_at)
        select '#', jsonb_build_object('type', 'queue', 'queue', 'many-' || n), now() from generate_series(1, 1100) n`,
    );
    const refused = await call("two", "POST", "/v1/topics/news/messages", body);
    expect(refused.status).toBe(413);
    expect(refused.body).toMatchObject({
      code: "PayloadTooLarge",
      detail: expect.stringContaining("publish a reference"),
    });
    await expect(pawl.topics.publish("news", body.body)).rejects.toMatchObject({ code: "PayloadTooLarge" });
    await expect(
      sql("select pawl.publish('news', $1::jsonb)", [JSON.stringify(body.body)]),
    ).rejects.toMatchObject({ code: "PW413" });
    expect(await sql("select from runs where name ~ '^~many-'")).toEqual([]);
    const small = await call("two", "POST", "/v1/topics/news/messages", {
      body: { see: "https://example.com/1" },
    });
    expect(small.body).toMatchObject({ messages: 1_100 });
    await sql("delete from subscriptions");
  });
});
