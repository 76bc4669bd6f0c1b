/** The database itself ends a statement that takes too long, and calls that read much leave the connections of all others free. */
import { createServer } from "@pawl/server";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { Messages } from "../../support/proxies/messages.js";
import { relayTo } from "../../support/proxies/relay.js";
import { TestStore } from "../../support/test-store.js";
import { until } from "../../support/until.js";

const { directUrl: url, sql, connect } = await testDatabase();

const everything = {
  name: null,
  version: null,
  phases: null,
  queue: null,
  kind: null,
  error: null,
  parentId: null,
  since: null,
  until: null,
  input: null,
  tags: null,
  correlationKey: null,
  before: null,
  limit: 10,
};

/** A relay that tells another process id than the server does, as every pooler does. */
async function pooled(): Promise<string> {
  const relay = await relayTo(url, ({ client, database }) => {
    const told = new Messages({ fromClient: false });
    client.pipe(database);
    database.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of told.take(chunk)) {
        if (type === "K") bytes.writeInt32BE(bytes.readInt32BE(5) + 1_000_000, 5);
        client.write(bytes);
      }
    });
  });
  afterAll(relay.close);
  return relay.url;
}

/** Our statements that the server works on. */
const working = (): Promise<unknown[]> =>
  sql(
    "select query from pg_stat_activity where application_name = 'pawl' and state = 'active' and datname = current_database()",
  );

async function locked<T>(table: string, during: () => Promise<T>): Promise<T> {
  const other = await connect();
  await other.query("begin");
  await other.query(`lock table ${table} in access exclusive mode`);
  try {
    return await during();
  } finally {
    await other.query("rollback");
  }
}

describe.each([
  ["straight to the server", async () => url],
  ["behind a pooler", pooled],
])("%s", (_way, way) => {
  it("a listing that takes too long is ended by the server, and leaves no limit on the connection", async () => {
    const store = new TestStore({ url: await way(), schema: "pawl" }, { connections: 2, statementMs: 300 });
    afterAll(() => store.close());
    await locked("runs", async () => {
      await expect(store.list(everything)).rejects.toMatchObject({
        code: "Unavailable",
        message: expect.stringContaining("statement timeout"),
      });
      await until("nothing of it is left", async () => (await working()).length === 0);
    });
    expect(await store.list(everything)).toMatchObject({ runs: [] });
  });
});

it("every call is ended by the server where no pooler shares the connection, before the driver gives up on it", async () => {
  const store = new TestStore({ url, schema: "pawl" }, { connections: 1, statementMs: 300 });
  afterAll(() => store.close());
  await locked("runs", async () => {
    await expect(store.get(["64"])).rejects.toMatchObject({ code: "Unavailable" });
    await until("nothing of it is left", async () => (await working()).length === 0);
  });
});

it("listings and counts that hang leave the connections of everybody else free", async () => {
  const server = await createServer({ database: url, port: 0, pool: 4, logger: silent });
  afterAll(() => server.close());
  const address = await server.listen();
  const get = (path: string): Promise<Response> => fetch(address + path);
  const started = await fetch(`${address}/v1/workflows/well/runs`, { method: "POST" });
  const { runId } = (await started.json()) as { runId: string };
  const hanging: Promise<Response>[] = [];
  await locked("definitions", async () => {
    for (let count = 0; count < 20; count++) hanging.push(get("/v1/runs?kind=job"), get("/v1/workflows"));
    await until("they hang", async () => (await working()).length >= 3);
    for (const path of [`/v1/runs/${runId}`, "/v1/limits", "/readyz", `/v1/runs/${runId}/steps`]) {
      expect((await get(path)).status, path).toBe(200);
    }
    const headers = { "content-type": "application/json" };
    const sent = { method: "POST", body: "{}", headers };
    const signalled = await fetch(`${address}/v1/runs/${runId}/signals/go`, sent);
    expect(signalled.status).toBe(200);
  });
  const answers = await Promise.all(hanging);
  expect(new Set(answers.map(({ status }) => status)).has(200)).toBe(true);
});
