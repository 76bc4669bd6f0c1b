import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createPawlServer } from "@pawl/server";
import { connect, serve } from "pawl";
import { afterAll, expect, it } from "vitest";
import { deliveryJob, type DeliverySettings } from "../../../packages/server/dist/delivery/delivery.js";
import { checkTargets } from "../../../packages/server/dist/delivery/targets.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const pawl = connect(database.url);
afterAll(() => pawl.close());

interface Arrival {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on loopback that answers as it is told, the last answer again and again. */
async function receiver(...answers: ((response: ServerResponse) => void)[]) {
  const arrivals: Arrival[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      arrivals.push({ headers: request.headers, body });
      answers[Math.min(arrivals.length, answers.length) - 1]!(response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return { arrivals, port: (server.address() as AddressInfo).port };
}

const status =
  (code: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(code, headers).end("thanks");

const settings: DeliverySettings = { isAllowed: checkTargets(true), timeoutMs: 10_000, backoffMs: () => 10 };

async function deliver(given: Partial<DeliverySettings> = {}): Promise<void> {
  const worker = serve([deliveryJob(database.store, { ...settings, ...given })], {
    url: database.url,
    logger: silent,
  });
  await worker.ready;
  try {
    await until("all deliveries have ended", async () => {
      const { runs } = await pawl.runs.list({ name: "pawl-delivery", status: "running", limit: 1 });
      return runs.length === 0;
    });
  } finally {
    await worker.stop();
  }
}

let topics = 0;
/** Publishes one body to one URL and answers what became of the delivery. */
async function publishTo(url: string, given: Partial<DeliverySettings> & { secret?: string } = {}) {
  const { secret, ...rest } = given;
  const topic = `t${++topics}`;
  const { id } = await pawl.subscriptions.create(topic, { type: "http", url, secret });
  expect(await pawl.topics.publish(topic, { n: 1, text: "häkchen ✓" })).toMatchObject({ deliveries: 1 });
  await deliver(rest);
  await pawl.subscriptions.delete(id);
  const { runs } = await pawl.runs.list({ name: "pawl-delivery", limit: 1 });
  return { run: runs[0]!, topic };
}

it("a delivery is a POST of the body, signed as Standard Webhooks are", async () => {
  const key = Buffer.from("0123456789abcdef0123456789abcdef");
  const { arrivals, port } = await receiver(status(204));
  const { run, topic } = await publishTo(`http://127.0.0.1:${port}/hook?a=b`, {
    secret: `whsec_${key.toString("base64")}`,
  });
  expect(run).toMatchObject({ status: "completed", output: { status: 204 } });
  expect(arrivals).toHaveLength(1);
  const { headers, body } = arrivals[0]!;
  expect(JSON.parse(body)).toEqual({ n: 1, text: "häkchen ✓" });
  expect(headers["content-type"]).toBe("application/json");
  expect(headers["pawl-topic"]).toBe(topic);
  expect(headers["webhook-id"]).toBe(run.runId);
  const signed = `${headers["webhook-id"] as string}.${headers["webhook-timestamp"] as string}.${body}`;
  const expected = createHmac("sha256", key).update(signed).digest("base64");
  expect(headers["webhook-signature"]).toBe(`v1,${expected}`);
});

it("a delivery without a secret is not signed", async () => {
  const { arrivals, port } = await receiver(status(200));
  await publishTo(`http://127.0.0.1:${port}/`);
  expect(arrivals[0]!.headers["webhook-id"]).toBeDefined();
  expect(arrivals[0]!.headers["webhook-signature"]).toBeUndefined();
});

it("a receiver that is busy or broken is tried again, with the same id", async () => {
  const { arrivals, port } = await receiver(status(503), status(429), status(408), status(200));
  const { run } = await publishTo(`http://127.0.0.1:${port}/`);
  expect(run).toMatchObject({ status: "completed", attempt: 3 });
  expect(new Set(arrivals.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect(arrivals).toHaveLength(4);
});

it("a receiver that hangs up or hangs is tried again", async () => {
  const hangUp = (response: ServerResponse): void => void response.socket!.destroy();
  const { arrivals, port } = await receiver(hangUp, () => {}, status(200));
  const { run } = await publishTo(`http://127.0.0.1:${port}/`, { timeoutMs: 500 });
  expect(run).toMatchObject({ status: "completed" });
  expect(arrivals.length).toBeGreaterThanOrEqual(3);
});

it.each([400, 401, 404, 410, 422])("a receiver that answers %i is not asked again", async (code) => {
  const { arrivals, port } = await receiver(status(code));
  const { run } = await publishTo(`http://127.0.0.1:${port}/`);
  expect(run).toMatchObject({ status: "failed", error: { code: "NonRetryable" } });
  expect(run.error?.message).toContain(String(code));
  expect(arrivals).toHaveLength(1);
});

it("redirects are not followed", async () => {
  const elsewhere = await receiver(status(200));
  const { port } = await receiver(status(307, { location: `http://127.0.0.1:${elsewhere.port}/` }));
  const { run } = await publishTo(`http://127.0.0.1:${port}/`);
  expect(run).toMatchObject({ status: "failed" });
  expect(run.error?.message).toContain("do not follow redirects");
  expect(elsewhere.arrivals).toEqual([]);
});

it("an answer without end is not read to its end", async () => {
  const { port } = await receiver((response) => {
    const pour = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024)));
    };
    response.on("drain", pour);
    pour();
  });
  const { run } = await publishTo(`http://127.0.0.1:${port}/`);
  expect(run).toMatchObject({ status: "completed" });
});

it.each(["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433", "localhost"])(
  "%s is refused unless private addresses are allowed",
  async (host) => {
    const { arrivals, port } = await receiver(status(200));
    const { run } = await publishTo(`http://${host}:${port}/`, { isAllowed: checkTargets(false) });
    expect(run).toMatchObject({ status: "failed", error: { code: "NonRetryable" } });
    expect(run.error?.message).toContain("not an address of the public internet");
    expect(arrivals).toEqual([]);
  },
);

it("a private address is connected to if it, its network or its name is listed", async () => {
  const { arrivals, port } = await receiver(status(200));
  const resolve = () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
  for (const [host, list, isAllowed] of [
    ["127.0.0.1", ["127.0.0.1"], true],
    ["[::ffff:127.0.0.1]", ["127.0.0.0/8"], true],
    ["127.0.0.1", ["10.0.0.0/8", "hooks.test"], false],
    ["hooks.test", ["10.0.0.0/8", "Hooks.test"], true],
    ["hooks.test", ["127.0.0.0/8"], true],
    ["hooks.test", ["other.test"], false],
  ] as const) {
    const before = arrivals.length;
    const { run } = await publishTo(`http://${host}:${port}/`, { isAllowed: checkTargets(list), resolve });
    expect(run.status).toBe(isAllowed ? "completed" : "failed");
    expect(arrivals.length - before).toBe(isAllowed ? 1 : 0);
  }
});

it.each(["127.0.0.1", "::1", "::ffff:127.0.0.1"])(
  "a name that resolves to %s is refused, and asked for once",
  async (address) => {
    const { arrivals, port } = await receiver(status(200));
    let asked = 0;
    const { run } = await publishTo(`http://rebinding.test:${port}/`, {
      isAllowed: checkTargets(false),
      resolve: () => {
        asked++;
        return Promise.resolve([{ address, family: address.includes(":") ? 6 : 4 }]);
      },
    });
    expect(run).toMatchObject({ status: "failed", error: { code: "NonRetryable" } });
    expect(asked).toBe(1);
    expect(arrivals).toEqual([]);
  },
);

it("the connection goes to the address that was checked, under the name of the URL", async () => {
  const { arrivals, port } = await receiver(status(200));
  const asked: string[] = [];
  const { run } = await publishTo(`http://receiver.test:${port}/`, {
    resolve: (host) => {
      asked.push(host);
      return Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
    },
  });
  expect(run).toMatchObject({ status: "completed" });
  expect(asked).toEqual(["receiver.test"]);
  expect(arrivals[0]!.headers.host).toBe(`receiver.test:${port}`);
});

it("a delivery whose subscription was deleted fails", async () => {
  const { arrivals, port } = await receiver(status(200));
  const url = `http://127.0.0.1:${port}/`;
  const { id } = await pawl.subscriptions.create("deleted", { type: "http", url });
  await pawl.topics.publish("deleted", 1);
  await pawl.subscriptions.delete(id);
  await deliver();
  const { runs } = await pawl.runs.list({ name: "pawl-delivery", limit: 1 });
  expect(runs[0]).toMatchObject({ status: "failed", error: { message: `subscription ${id} was deleted` } });
  expect(arrivals).toEqual([]);
});

it("a server that listens delivers", async () => {
  const { arrivals, port } = await receiver(status(200));
  const server = await createPawlServer({ database: database.url, port: 0, allowPrivateDeliveries: true });
  try {
    await server.listen();
    await pawl.subscriptions.create("served", { type: "http", url: `http://127.0.0.1:${port}/` });
    await pawl.topics.publish("served", "by the server");
    await until("it has arrived", () => arrivals.length > 0);
    expect(JSON.parse(arrivals[0]!.body)).toBe("by the server");
  } finally {
    await server.close();
  }
});
