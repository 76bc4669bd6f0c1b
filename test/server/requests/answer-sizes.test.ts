/** No answer is longer than 16 MiB, neither of the database nor of the server: then there is a cursor. */
import { connect, type Run } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";

const database = await testDatabase();
const { sql, store } = database;
const server = await testServer({ database: database.url });
const pawl = connect(database.url);
const remote = connect(server.url);
afterAll(() => Promise.all([pawl.close(), remote.close()]));

const most = 16 * 1024 * 1024;
/** A value of a megabyte that compresses well, and one of escapes, whose text is six times as long as what is stored of it. */
const large = "x".repeat(1_000_000);
const escapes = "\u0001".repeat(160_000);

/** The body of an answer as text, and as JSON. */
async function ask<T>(path: string, body?: unknown): Promise<{ bytes: number; answer: T }> {
  const sent =
    body === undefined
      ? {}
      : { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await fetch(server.url + path, sent);
  expect(response.status).toBe(200);
  const text = await response.text();
  return { bytes: text.length, answer: JSON.parse(text) as T };
}

/** Runs that have ended with this result. */
async function endedRuns(name: string, count: number, result: unknown): Promise<string[]> {
  const rows = await sql<{ id: string }>(
    `insert into runs (id, status, name, queue, priority, retention, input, result, eligible_at, inserted_at, completed_at, expires_at)
      select (nextval('run_ids') << 6), 'done', $1, 'default', 0, interval '1 day', 'null', $2::jsonb, now(), now() + n * interval '1 ms',
        now(), now() + interval '1 day'
      from generate_series(1, $3) n returning id`,
    [name, JSON.stringify(result), count],
  );
  return rows.map(({ id }) => id);
}

describe.each([
  ["large results", large],
  ["results of escapes", escapes],
])("of %s", (name, result) => {
  const workflow = name.replaceAll(" ", "-");

  it("a listing goes on by its cursor, with every run once, newest first, over both transports", async () => {
    const ids = await endedRuns(workflow, 24, result);
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null; pages++) {
      const after: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const path = `/v1/workflows/${workflow}/runs?limit=100${after}`;
      const { bytes, answer } = await ask<{ runs: Run[]; cursor: string | null }>(path);
      expect(bytes).toBeLessThan(most + 100_000);
      seen.push(...answer.runs.map(({ runId }) => runId));
      cursor = answer.cursor;
    }
    expect(seen).toEqual(ids.toReversed());
    expect(pages).toBeGreaterThan(1);
    for (const client of [pawl, remote]) {
      const first = await client.runs.list({ name: workflow, limit: 100 });
      expect(first.runs.length).toBeLessThan(24);
      const second = await client.runs.list({ name: workflow, limit: 100, cursor: first.cursor! });
      expect(second.runs[0]!.runId).toBe(ids.toReversed()[first.runs.length]);
    }
  });

  it("the ends of runs come in parts, and who asks for the rest gets it", async () => {
    const ids = await endedRuns(workflow, 24, result);
    let left = ids;
    for (let isMore = true; isMore;) {
      type Ended = { runs: { runId: string }[]; more: boolean };
      const { bytes, answer } = await ask<Ended>("/v1/runs/ended", { runIds: left });
      expect(bytes).toBeLessThan(most + 100_000);
      const told = new Set(answer.runs.map(({ runId }) => runId));
      expect(told.size).toBeGreaterThan(0);
      left = left.filter((id) => !told.has(id));
      isMore = answer.more;
    }
    expect(left).toEqual([]);
    // The database does not answer with more either.
    const { runs, more } = await store.ended(ids);
    expect(runs.reduce((sum, one) => sum + one.result!.length, 0)).toBeLessThanOrEqual(most);
    expect(more).toBe(true);
    for (const client of [pawl, remote]) {
      const results = await Promise.all(ids.map((id) => client.result(id, { timeout: "100s" })));
      expect(new Set(results)).toEqual(new Set([result]));
    }
  });

  it("the steps of a run come in pages, and the library gives all of them in order", async () => {
    const [runId] = await endedRuns(workflow, 1, null);
    await sql(
      `insert into steps (run_id, name, kind, seq, output, started_at, completed_at)
        select $1, 'step-' || (100 - n), 'run', n, $2::jsonb, now(), now() from generate_series(1, 24) n`,
      [runId, JSON.stringify(result)],
    );
    await sql(
      `insert into steps (run_id, name, kind, started_at) select $1, 'open-' || n, 'wait', now() from generate_series(1, 3) n`,
      [runId],
    );
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const path: string = `/v1/runs/${runId}/steps${cursor === "" ? "" : `?cursor=${cursor}`}`;
      type Steps = { steps: { name: string }[]; cursor: string | null };
      const { bytes, answer } = await ask<Steps>(path);
      expect(bytes).toBeLessThan(most + 100_000);
      seen.push(...answer.steps.map(({ name: step }) => step));
      cursor = answer.cursor;
    }
    const names = Array.from({ length: 24 }, (_, index) => `step-${99 - index}`);
    expect(seen).toEqual([...names, "open-1", "open-2", "open-3"]);
    for (const client of [pawl, remote]) {
      expect((await client.runs.steps(runId!)).map(({ name: step }) => step)).toEqual(seen);
    }
  });

  it("a receive brings as many messages as fit", async () => {
    const sent = Array.from({ length: 3 }, async () =>
      pawl.queues.sendMany(workflow, Array(8).fill({ body: result })),
    );
    await Promise.all(sent);
    let received = 0;
    for (let found = 1; found > 0; received += found) {
      type Received = { messages: unknown[] };
      const { bytes, answer } = await ask<Received>(`/v1/queues/${workflow}/receive`, { max: 100 });
      expect(bytes).toBeLessThan(most + 100_000);
      found = answer.messages.length;
    }
    expect(received).toBe(24);
  });
});

it("a step that completes between two pages is not left out", async () => {
  const [runId] = await endedRuns("moving", 1, null);
  const values = `generate_series(1, 20) n`;
  await sql(
    `insert into steps (run_id, name, kind, seq, output, started_at, completed_at)
      select $1, 'done-' || n, 'run', n, $2::jsonb, now(), now() from ${values}`,
    [runId, JSON.stringify(large)],
  );
  await sql(
    `insert into steps (run_id, name, kind, started_at, error)
      select $1, 'open-' || n, 'run', now() + n * interval '1 ms', jsonb_build_object('message', $2::text) from ${values}`,
    [runId, large],
  );
  const first = await store.steps(runId!, null);
  const second = await store.steps(runId!, first.last);
  const shown = new Set([...first.steps, ...second.steps].map(({ name }) => name));
  expect(shown.size).toBeLessThan(40);
  // The last one, which neither page has shown yet, completes now, and one that was shown as pending.
  await sql("update steps set seq = 21, completed_at = now() where run_id = $1 and name = 'open-20'", [
    runId,
  ]);
  await sql("update steps set seq = 22, completed_at = now() where run_id = $1 and name = 'open-1'", [runId]);
  const rest: string[] = [];
  for (let { last } = second; last !== null;) {
    const page = await store.steps(runId!, last);
    rest.push(...page.steps.map(({ name }) => name));
    last = page.last;
  }
  expect(new Set([...shown, ...rest]).size).toBe(40);
  expect(rest.slice(0, 2)).toEqual(["open-20", "open-1"]);
});

it.each(["", "abc", "W10", "WzEsMl0", btoa('[1,"x","y"]')])(
  "a cursor that nobody gave is refused: %s",
  async (cursor) => {
    const [runId] = await endedRuns("cursors", 1, null);
    const answer = await server.call("GET", `/v1/runs/${runId}/steps?cursor=${cursor}`);
    expect(answer.status).toBe(422);
  },
);

it("subscriptions come in pages, and the library gives all of them", async () => {
  await sql(
    `insert into subscriptions (pattern, target, inserted_at)
      select 'a.b', jsonb_build_object('type', 'http', 'url', 'http://127.0.0.1:1/' || n || repeat('x', 1900)), now()
      from generate_series(1, 9000) n`,
  );
  type Page = { subscriptions: { id: string }[]; cursor: string | null };
  for (const path of ["/v1/subscriptions", "/v1/topics/a.b/subscriptions"]) {
    const first = await ask<Page>(path);
    expect(first.bytes).toBeLessThan(most);
    const second = await ask<Page>(`${path}?cursor=${first.answer.cursor}`);
    const ids = [...first.answer.subscriptions, ...second.answer.subscriptions].map(({ id }) => id);
    expect(new Set(ids).size).toBe(9_000);
    expect(second.answer.cursor).toBeNull();
    expect((await server.call("GET", `${path}?cursor=eA`)).status).toBe(422);
  }
  for (const client of [pawl, remote]) expect(await client.subscriptions.list()).toHaveLength(9_000);
});

it("of more queues than ten thousand, the first are listed", async () => {
  await sql("select count(pawl.send('queue-' || n, '1')) from generate_series(1, 10050) n");
  const { answer } = await ask<{ queues: { queue: string }[] }>("/v1/queues");
  expect(answer.queues).toHaveLength(10_000);
  expect(answer.queues).toContainEqual(expect.objectContaining({ queue: "queue-1", visible: 1 }));
});

it("there are no more rate limits than an answer can list", async () => {
  await sql(
    `insert into limits (name, allowed, period, burst, changed_at)
      select 'limit-' || n, 1, interval '1 s', 1, now() from generate_series(1, 10000) n`,
  );
  const one = { allowed: 1, period: "1s" } as const;
  await expect(pawl.limits.set("another", one)).rejects.toMatchObject({
    code: "InvalidOption",
    message: expect.stringContaining("10000 limits"),
  });
  const refused = await server.call("PUT", "/v1/limits/another", one);
  expect(refused).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
  await pawl.limits.set("limit-1", { ...one, allowed: 2 });
  const { answer } = await ask<{ limits: { name: string }[] }>("/v1/limits");
  expect(answer.limits).toHaveLength(10_000);
});
