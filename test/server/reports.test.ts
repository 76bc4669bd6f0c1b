import { connect, job, machine, type Pawl, serve } from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

const { url, sql } = await testDatabase();
const secrets = {
  all: "all-secret-0123456789",
  shop: "shop-secret-0123456789",
  mail: "mail-secret-0123456789",
};
const server = await testServer({
  database: url,
  tokens: [
    `all:read:${secrets.all}`,
    `shop:read:names=shop-:${secrets.shop}`,
    `mail:read:queues=mail:${secrets.mail}`,
  ],
});
const get = async (who: keyof typeof secrets, path: string) => {
  const { status, body } = await server.call("GET", path, undefined, {
    authorization: `Bearer ${secrets[who]}`,
  });
  return { status, body: body as Record<string, never> };
};

const order = machine({
  name: "shop-order",
  steps: {
    start: (ctx) => ctx.awaitSignal("paid", "end", ctx.state),
    end: (ctx) => ctx.done(),
  },
});
const letter = job({ name: "letter", queue: "mail", run: () => new Promise<void>(() => {}) });
const broken = job({
  name: "shop-broken",
  maxAttempts: 1,
  run: () => {
    throw Object.assign(new Error("no such card"), { code: "card" });
  },
});
const worker = serve([order, letter, broken], {
  url,
  queues: { default: 5, mail: 5 },
  drainTimeout: "10ms",
});
let straight: Pawl;
const remote = connect(server.url, { token: secrets.all });
afterAll(async () => {
  await worker.stop();
  await Promise.all([straight.close(), remote.close()]);
});

beforeAll(async () => {
  straight = connect(url);
  const { runId } = await straight.start(order, {});
  const failed = await straight.start(broken);
  await straight.start(letter, undefined, { partitionKey: "anna" });
  await until("the key is held", async () => (await straight.keys()).keys.length === 1);
  await straight.start(letter, undefined, { partitionKey: "anna" });
  await until("it waits", async () => (await straight.runs.get(runId)).phase === "awaiting_signal");
  await until("it has failed", async () => (await straight.runs.get(failed.runId)).status === "failed");
  await until("a run is blocked", async () => (await straight.keys()).keys[0]?.waiting === 1);
  // As if a minute had passed, so that roll_up counts them.
  await sql(
    "update runs set inserted_at = inserted_at - interval '1 minute', completed_at = completed_at - interval '1 minute', expires_at = expires_at - interval '1 minute'",
  );
  await sql("truncate series, failures");
  await sql("update series_cursor set started_id = 0, ended_at = '-infinity', counted_at = '-infinity'");
  await until("they are counted", async () => (await straight.failures()).failures.length === 1);
});

const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name).toSorted();

describe("the reports over REST", () => {
  it("are the same through a client of the server", async () => {
    expect(await remote.series({ by: "hour" })).toEqual(await straight.series({ by: "hour" }));
    expect(await remote.failures()).toEqual(await straight.failures());
    expect(await remote.waiting()).toEqual(await straight.waiting());
    expect(await remote.keys()).toEqual(await straight.keys());
    expect(await remote.definitions.list()).toEqual(await straight.definitions.list());
    expect(await remote.limits.slots("desk")).toEqual({ keys: [], cursor: null });
    const [one, other] = [await remote.workers(), await straight.workers()];
    expect(one.workers.map(({ id, serves }) => [id, serves])).toEqual(
      other.workers.map(({ id, serves }) => [id, serves]),
    );
  });

  it("show a token with prefixes its own names and queues, and never answer 403", async () => {
    const paths = ["series", "failures", "waiting", "keys", "definitions", "workers", "doctor"];
    for (const who of ["all", "shop", "mail"] as const)
      for (const path of paths) expect([path, (await get(who, `/v1/${path}`)).status]).toEqual([path, 200]);

    const started = async (who: keyof typeof secrets) => {
      const { points } = (await get(who, "/v1/series?by=hour")).body as unknown as {
        points: { started: number }[];
      };
      return points.reduce((sum, point) => sum + point.started, 0);
    };
    expect([await started("all"), await started("shop"), await started("mail")]).toEqual([4, 2, 2]);
    const listed = async (who: keyof typeof secrets, path: string, key: string) =>
      names((await get(who, path)).body[key] as unknown as { name: string }[]);
    expect(await listed("shop", "/v1/definitions", "definitions")).toEqual(["shop-broken", "shop-order"]);
    expect(await listed("mail", "/v1/definitions", "definitions")).toEqual(["letter"]);
    expect(await listed("shop", "/v1/failures", "failures")).toEqual(["shop-broken"]);
    expect(await listed("shop", "/v1/failures?name=letter", "failures")).toEqual([]);
    expect(await listed("shop", "/v1/waiting", "runs")).toEqual(["shop-order"]);
    expect(await listed("mail", "/v1/waiting", "runs")).toEqual([]);
    expect((await get("shop", "/v1/keys")).body).toEqual({ keys: [], cursor: null });
    expect((await get("mail", "/v1/keys")).body).toMatchObject({ keys: [{ key: "anna", waiting: 1 }] });
    expect((await get("shop", "/v1/workers")).body).toMatchObject({
      workers: [{ serves: [{ name: "shop-broken" }, { name: "shop-order" }] }],
    });
  });

  it("have findings of the doctor, about the database only for tokens that see all", async () => {
    const checks = async (who: keyof typeof secrets) =>
      ((await get(who, "/v1/doctor")).body as unknown as { findings: { check: string }[] }).findings.map(
        ({ check }) => check,
      );
    expect(await checks("all")).toEqual(expect.arrayContaining(["connection", "schema", "due runs"]));
    expect(await checks("shop")).toEqual(expect.arrayContaining(["definitions", "due runs"]));
    expect(await checks("shop")).not.toEqual(expect.arrayContaining(["connection"]));
  });

  it("refuse bad queries with the name of the field", async () => {
    for (const path of [
      "series?by=day",
      "series?from=yesterday",
      "failures?limit=0",
      "waiting?limit=101",
      "waiting?cursor=x",
      "keys?cursor=W251bGxd",
      "workers?other=1",
    ]) {
      const { status, body } = await get("all", `/v1/${path}`);
      expect([path, status]).toEqual([path, expect.toBeOneOf([400, 422])]);
      expect(body).toMatchObject({ detail: expect.stringMatching(/by|from|limit|cursor|other/) });
    }
  });
});
