import { connect, type Run } from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";
import { until } from "../support/until.js";

const { url, sql } = await testDatabase();
const { call } = await testServer({ database: url, deliveries: false });
const pawl = connect(url);
afterAll(() => pawl.close());

const inputs = [
  { user: { id: 1, name: "ann" }, tags: ["a", "b"] },
  { user: { id: "1", name: "bob" }, tags: ["b"] },
  { user: { id: 2, name: "true" }, vip: true },
  { user: null, "odd key": 1 },
];
let runIds: string[];
beforeAll(async () => {
  runIds = (
    await pawl.startMany(
      "listed",
      inputs.map((input) => ({ input })),
    )
  ).map(({ runId }) => runId);
  await pawl.start("other", { user: { id: 1 } }, { queue: "elsewhere" });
});

const page = async (path: string): Promise<{ runs: Run[]; cursor: string | null }> => {
  const { status, body } = await call("GET", path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as { runs: Run[]; cursor: string | null };
};

describe("a filter of the input", () => {
  const found = async (query: string): Promise<number[]> => {
    const { runs } = await page(`/v1/workflows/listed/runs?${query}`);
    return runs.map(({ runId }) => runIds.indexOf(runId)).toSorted();
  };

  it.each([
    ["input.user.id=1", [0]],
    ["input.user.id=%221%22", [1]],
    ["input.user.name=ann", [0]],
    ["input.user.name=%22true%22", [2]],
    ["input.vip=true", [2]],
    ["input.user=null", [3]],
    ["input.tags=[%22b%22]", [0, 1]],
    ["input.odd%20key=1", [3]],
    ["input.user.id=1&input.user.name=ann", [0]],
    ["input.user.id=1&input.user.name=bob", []],
    ["input.user=%7B%22id%22:1%7D&input.tags=[%22a%22]", [0]],
    ["input.__proto__.id=1", []],
    ["input.user.id=1&status=running&limit=5", [0]],
  ])("%s", async (query, expected) => {
    expect(await found(query)).toEqual(expected);
  });

  it("is the option input of the library", async () => {
    const { runs } = await pawl.runs.list({ name: "listed", input: { tags: ["b"] } });
    expect(runs.map(({ runId }) => runIds.indexOf(runId)).toSorted()).toEqual([0, 1]);
    expect((await pawl.runs.list({ input: { user: { id: 1 } } })).runs).toHaveLength(2);
    await expect(pawl.runs.list({ input: { n: 1n } })).rejects.toThrow("BigInt");
  });

  it.each(["input.=1", "input..a=1", "input.a=1&input.a=2", "input.a=1&input.a.b=2", "inputs.a=1"])(
    "%s is refused",
    async (query) => {
      const { status, body } = await call("GET", `/v1/runs?${query}`);
      expect({ status, body }).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    },
  );
});

describe("a listing", () => {
  it("of all names is filtered by name and queue", async () => {
    expect((await page("/v1/runs")).runs).toHaveLength(5);
    expect((await page("/v1/runs?name=listed")).runs).toHaveLength(4);
    expect((await page("/v1/runs?queue=elsewhere")).runs.map(({ name }) => name)).toEqual(["other"]);
    expect((await page("/v1/runs?version=2")).runs).toEqual([]);
    expect((await page("/v1/runs?phase=done")).runs).toEqual([]);
  });

  it("is filtered by the time of the start", async () => {
    const [first] = (await page("/v1/workflows/other/runs")).runs;
    const at = encodeURIComponent(String(first!.startedAt));
    expect((await page(`/v1/runs?since=${at}&name=other`)).runs).toHaveLength(1);
    expect((await page(`/v1/runs?until=${at}&name=other`)).runs).toHaveLength(0);
  });

  it.each(["/v1/workflows/paged/runs", "/v1/runs"])(
    "of %s misses and repeats nothing while runs are added",
    async (path) => {
      const add = async (count: number): Promise<string[]> =>
        (
          await pawl.startMany(
            "paged",
            Array.from({ length: count }, () => ({ input: null })),
          )
        ).map(({ runId }) => runId);
      await add(3);
      const before = await sql<{ id: string }>(
        `select id::text from runs ${path === "/v1/runs" ? "" : "where name = 'paged'"} order by runs.id desc`,
      );
      const seen: string[] = [];
      for (let cursor: string | null = ""; cursor !== null;) {
        const next = await page(`${path}?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
        seen.push(...next.runs.map(({ runId }) => runId));
        cursor = next.cursor;
        await add(2);
      }
      expect(seen).toEqual(before.map(({ id }) => id));
    },
  );

  it.each([
    ["limit=0", "query.limit must be a whole number from 1 to 100, not 0"],
    ["limit=ten", 'query.limit must be a whole number from 1 to 100, not "ten"'],
    ["limit=5&limit=6", "query.limit must be a whole number"],
    ["status=done", "query.status must be one of running, completed, failed, cancelled"],
    ["since=soon", "since must be a Date or an ISO 8601 text"],
    ["cursor=x", "cursor must be an unchanged cursor of runs.list"],
    ["lmit=5", 'unknown query parameter "lmit"'],
    ["lmit=5", 'did you mean "limit"?'],
  ])("with %s is refused", async (query, detail) => {
    const answer = await call("GET", `/v1/runs?${query}`);
    expect(answer).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    expect((answer.body as { detail: string }).detail).toContain(detail);
  });
});

it("names are listed with how many runs they have, also those that have none", async () => {
  await sql("insert into definitions values ('idle', 1, 'job', 'default', 0, '1 day', now())");
  await pawl.startMany(
    "counted",
    Array.from({ length: 10 }, () => ({ input: null })),
  );
  const phases = { done: 1, failed: 2, cancelled: 3 };
  for (const [phase, count] of Object.entries(phases)) {
    await sql(
      `update runs set status = $1 where id in (select id from runs where name = 'counted' and status = 'runnable' limit ${count})`,
      [phase],
    );
  }
  await sql("insert into workers values ('w', '10s', '{}', '{}', '{}', now(), now())");
  await sql(
    "update runs set status = 'executing', locked_by = 'w' where id = (select max(id) from runs where name = 'counted' and status = 'runnable')",
  );
  const { body } = await call("GET", "/v1/workflows");
  const { workflows } = body as { workflows: { name: string; counts: object }[] };
  expect(workflows.map(({ name }) => name)).toEqual(["counted", "idle", "listed", "other", "paged"]);
  expect(workflows.slice(0, 2).map(({ counts }) => counts)).toEqual([
    { running: 4, completed: 1, failed: 2, cancelled: 3 },
    { running: 0, completed: 0, failed: 0, cancelled: 0 },
  ]);
});

it("names of the engine are not listed where they have no runs: an empty server lists nothing", async () => {
  const empty = await testDatabase();
  const server = await testServer({ database: empty.url });
  await until("it serves deliveries", async () => {
    return (await empty.sql("select from definitions where name = 'pawl-delivery'")).length > 0;
  });
  expect((await server.call("GET", "/v1/workflows")).body).toEqual({ workflows: [] });
});
