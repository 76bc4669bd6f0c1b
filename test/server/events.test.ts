import { createServer } from "@pawl/server";
import { connect, job, type RunId, serve, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { EventStream } from "../../packages/server/dist/reports/event-stream.js";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

const { url, sql } = await testDatabase();
const secrets = { all: "all-secret-0123456789", shop: "shop-secret-0123456789" };
const tokens = [`all:read:${secrets.all}`, `shop:read:names=shop-:${secrets.shop}`];
const { url: server } = await testServer({ database: url, tokens });
const pawl = connect(url);

const greet = job({ name: "greet", run: () => "hello" });
const order = workflow({
  name: "shop-order",
  run: async ({ step }) => {
    await step.run("reserve", () => 1);
    return step.waitForEvent("paid");
  },
});
const worker = serve([greet, order], { url });
const open: AbortController[] = [];
afterAll(async () => {
  for (const controller of open) controller.abort();
  await worker.stop();
  await pawl.close();
});

interface Message {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: {
    readonly events?: { runId: string; name: string; change: string; status: string; phase: string }[];
    readonly more?: number;
    readonly reason?: string;
  };
}

interface Stream {
  readonly status: number;
  readonly type: string | null;
  readonly messages: readonly Message[];
  readonly text: () => string;
  readonly isOver: () => boolean;
  close(): void;
}

async function stream(
  path: string,
  {
    who = "all",
    headers = {},
    at = server,
  }: { who?: keyof typeof secrets; headers?: object; at?: string } = {},
): Promise<Stream> {
  const controller = new AbortController();
  open.push(controller);
  const answer = await fetch(at + path, {
    headers: { authorization: `Bearer ${secrets[who]}`, ...headers },
    signal: controller.signal,
  });
  const messages: Message[] = [];
  let [text, read, isOver] = ["", 0, false];
  const pump = async (): Promise<void> => {
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf("\n\n", read); end >= 0; end = text.indexOf("\n\n", read)) {
        const lines = text.slice(read, end).split("\n");
        read = end + 2;
        const field = (name: string) =>
          lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
        const event = field("event");
        if (event !== undefined)
          messages.push({ event, id: field("id"), data: JSON.parse(field("data")!) as object });
      }
    }
  };
  void pump()
    .catch(() => {})
    .finally(() => (isOver = true));
  return {
    status: answer.status,
    type: answer.headers.get("content-type"),
    messages,
    text: () => text,
    isOver: () => isOver,
    close: () => controller.abort(),
  };
}

const eventsOf = ({ messages }: Stream) => messages.flatMap(({ data }) => data.events ?? []);
const opened = (one: Stream) => until("the stream stands", () => one.messages.length > 0);
const changesOf = (one: Stream, runId: string) =>
  eventsOf(one)
    .filter((event) => event.runId === runId)
    .map(({ change, status }) => `${change} ${status}`);
const told = (one: Stream, runId: RunId, change: string) =>
  until(`${change} of ${runId} is told`, () => changesOf(one, runId).some((known) => known.startsWith(change)));

describe("GET /v1/events", () => {
  it("tells starts and ends, filtered by name and status, and by the prefixes of the token", async () => {
    const all = await stream("/v1/events");
    const failed = await stream("/v1/events?status=failed");
    const named = await stream("/v1/events?name=shop-order");
    const part = await stream("/v1/events", { who: "shop" });
    expect([all.status, all.type]).toEqual([200, "text/event-stream"]);
    for (const one of [all, failed, named, part]) await opened(one);
    const first = await pawl.start(greet);
    const second = await pawl.start(order);
    await told(all, first.runId, "ended");
    for (const one of [all, named, part]) await told(one, second.runId, "started");
    expect(changesOf(all, first.runId)).toContain("ended completed");
    for (const one of [named, part])
      expect(new Set(eventsOf(one).map(({ name }) => name))).toEqual(new Set(["shop-order"]));
    expect(eventsOf(failed)).toEqual([]);
    expect(all.messages.every(({ id }) => /^\d+\.\d+$/.test(id ?? ""))).toBe(true);
    for (const one of [all, failed, named, part]) one.close();
  });

  it("tells every change of the runs that it names", async () => {
    const { runId } = await pawl.start(order);
    const other = await pawl.start(order);
    const one = await stream(`/v1/events?runId=${runId}`);
    const phases = () => eventsOf(one).map(({ phase }) => phase);
    await until("it waits", () => phases().includes("awaiting_signal"));
    await pawl.signal(other.runId, "paid", {});
    await pawl.signal(runId, "paid", {});
    await until("it is done", () => phases().includes("done"));
    expect(new Set(eventsOf(one).map((event) => event.runId))).toEqual(new Set([runId]));
    one.close();
  });

  it("resumes behind the message that the caller saw last, also at another server", async () => {
    const first = await stream("/v1/events");
    await opened(first);
    first.close();
    const missed = await pawl.start(greet);
    await pawl.result(missed.runId);
    const another = await createServer({ database: url, tokens, port: 0 });
    try {
      const at = await another.listen();
      const again = await stream("/v1/events", {
        at,
        headers: { "last-event-id": first.messages.at(-1)!.id! },
      });
      await told(again, missed.runId, "ended");
      expect(again.messages.map(({ event }) => event)).not.toContain("reset");
      const old = await stream("/v1/events", { at, headers: { "last-event-id": "64.1000" } });
      await until("it is told to read all again", () => old.messages[0]?.event === "reset");
    } finally {
      await another.close();
    }
  });

  it("sends bounded messages when thousands of runs start, and says how many it left out", async () => {
    const one = await stream("/v1/events");
    await opened(one);
    await sql(
      `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at)
      select nextval('run_ids') << 6, 'awaiting_signal', 'many', 'machine', 'default', 0, '1 day', '{}', 'infinity', clock()
      from generate_series(1, 5000)`,
    );
    const message = await until("it is told", () => one.messages.find(({ data }) => data.more! > 0));
    expect(message.data.events!.length).toBeLessThanOrEqual(100);
    expect(message.data.more).toBeGreaterThanOrEqual(4_900);
    one.close();
  });

  it("ends with a reason when the server closes", async () => {
    const closing = await createServer({ database: url, tokens, port: 0 });
    const one = await stream("/v1/events", { at: await closing.listen() });
    await opened(one);
    await closing.close();
    await until("it is over", () => one.isOver());
    expect(one.messages.at(-1)).toMatchObject({ event: "end", data: { reason: "closing" } });
  });

  it("refuses a caller with too many streams, bad filters, and more than 50 runs", async () => {
    const streams = await Promise.all(
      Array.from({ length: 20 }, () => stream("/v1/events", { who: "shop" })),
    );
    expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await stream("/v1/events", { who: "shop" })).status).toBe(429);
    for (const one of streams) one.close();
    await until("streams are free again", async () => {
      const again = await stream("/v1/events", { who: "shop" });
      again.close();
      return again.status === 200;
    });
    expect((await stream("/v1/events?status=odd")).status).toBeOneOf([400, 422]);
    expect((await stream("/v1/events?runId=x")).status).toBe(404);
    const many = Array.from({ length: 51 }, (_, n) => (n + 1) * 64).join(",");
    expect((await stream(`/v1/events?runId=${many}`)).status).toBe(422);
  });
});

describe("a stream of events", () => {
  const filter = {
    name: undefined,
    queue: undefined,
    status: undefined,
    runIds: [],
    allows: () => true,
    isPart: false,
  };
  const position = { id: "64", us: "1" };

  it("of a reader that is too slow ends with that reason", async () => {
    const slow = new EventStream(filter, { heartbeatMs: 60_000, lifeMs: 60_000, maxUnreadBytes: 10_000 });
    for (let n = 0; n < 1_000; n++) slow.onChanges({ changes: [], more: 1, position });
    let text = "";
    for await (const chunk of slow.body) text += String(chunk);
    expect(text.length).toBeLessThan(12_000);
    expect(text).toMatch(/event: end\ndata: \{"reason":"slow"\}\n\n$/);
  });

  it("sends comments while nothing happens, and ends after its time", async () => {
    const short = new EventStream(filter, { heartbeatMs: 5, lifeMs: 50, maxUnreadBytes: 10_000 });
    let text = "";
    for await (const chunk of short.body) text += String(chunk);
    expect(text).toMatch(/^retry: 2000\n\n(:\n\n)+event: end\ndata: \{"reason":"expired"\}\n\n$/);
  });
});
