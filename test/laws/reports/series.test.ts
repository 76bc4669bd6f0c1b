import type { SeriesPoint } from "pawl";
import { beforeEach, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl } = testEngine(database);
const { sql, store } = database;

const noon = "2030-01-01T12:00:00Z";

/** The clock of the database stands still at this time. */
const clockAt = (time: string) =>
  sql(
    `create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '${time}'::timestamptz $$`,
  );

interface Ended {
  readonly name?: string;
  readonly queue?: string;
  readonly status?: "done" | "failed" | "cancelled";
  readonly startedAt?: string;
  readonly endedAt: string;
  readonly retention?: string;
  readonly runs?: number;
  readonly error?: object;
}

/** Inserts ended runs. */
const insert = ({ name = "work", queue = "default", status = "done", ...given }: Ended) =>
  sql(
    `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at, completed_at, expires_at, error)
    select nextval('run_ids') << 6, $1::run_status, $2, 'job', $3, 0, $4::interval, '{}', $5::timestamptz, $5::timestamptz, $6::timestamptz,
      $6::timestamptz + $4::interval, $7::jsonb from generate_series(1, $8)`,
    [
      status,
      name,
      queue,
      given.retention ?? "30 days",
      given.startedAt ?? given.endedAt,
      given.endedAt,
      given.error === undefined ? null : JSON.stringify(given.error),
      given.runs ?? 1,
    ],
  );

const rollUp = async (limit = 10_000) =>
  (await sql<{ roll_up: boolean }>("select roll_up($1)", [limit]))[0]!.roll_up;

const busy = (points: readonly SeriesPoint[]) =>
  points.filter(({ started, completed, failed, cancelled }) => started + completed + failed + cancelled > 0);

beforeEach(async () => {
  await sql("truncate runs, series, failures");
  await sql(
    "update series_cursor set started_id = 0, ended_at = '-infinity', counted_at = '-infinity', sampled_at = '-infinity', is_behind = true",
  );
  await clockAt(noon);
});

describe("the series", () => {
  it("counts starts, ends by status, and latencies in their minute and hour, by name and queue", async () => {
    await insert({ startedAt: "2030-01-01T11:50:10Z", endedAt: "2030-01-01T11:50:10.150Z", runs: 98 });
    await insert({ startedAt: "2030-01-01T11:50:10Z", endedAt: "2030-01-01T11:52:00Z", status: "failed" });
    await insert({ name: "other", queue: "mail", endedAt: "2030-01-01T11:52:30Z", status: "cancelled" });
    await rollUp();
    const { by, from, to, countedTo, points } = await pawl.series();
    expect({ by, from, to, countedTo }).toEqual({
      by: "minute",
      from: new Date("2030-01-01T11:00:00Z"),
      to: new Date("2030-01-01T12:00:00Z"),
      countedTo: new Date("2030-01-01T11:59:55Z"),
    });
    expect(points).toHaveLength(60);
    const zero = { started: 0, completed: 0, failed: 0, cancelled: 0 };
    expect(busy(points)).toEqual([
      // Between 100 and 200 ms: half of the way, and 95 of 100 of it.
      {
        ...zero,
        at: new Date("2030-01-01T11:50:00Z"),
        started: 99,
        completed: 98,
        p50Ms: 150,
        p95Ms: 195,
        backlog: null,
      },
      {
        ...zero,
        at: new Date("2030-01-01T11:52:00Z"),
        started: 1,
        failed: 1,
        cancelled: 1,
        p50Ms: 1,
        p95Ms: expect.closeTo(190_000, 0),
        backlog: null,
      },
    ]);
    const mail = await pawl.series({ by: "hour", queue: "mail" });
    expect(mail.points).toHaveLength(24);
    expect(busy(mail.points)).toMatchObject([
      { at: new Date("2030-01-01T11:00:00Z"), started: 1, cancelled: 1, completed: 0 },
    ]);
    expect(busy((await pawl.series({ name: "work" })).points)).toMatchObject([
      { started: 99, completed: 98 },
      { started: 0, failed: 1 },
    ]);
    expect(busy((await pawl.series({ name: "other", queue: "default" })).points)).toEqual([]);
  });

  it("counts each run once, whatever the size of the batches, also ends at the same instant", async () => {
    for (const retention of ["30 days", "720:00:00", "1 hour"])
      await insert({ endedAt: "2030-01-01T11:30:00Z", retention, runs: 25 });
    await insert({ endedAt: "2030-01-01T11:31:00Z", runs: 10 });
    let rounds = 0;
    while (await rollUp(7)) rounds++;
    await clockAt("2030-01-01T12:00:30Z");
    await rollUp(7);
    expect(rounds).toBeGreaterThan(10);
    expect(busy((await pawl.series({ from: "2030-01-01T11:00:00Z" })).points)).toMatchObject([
      { started: 75, completed: 75 },
      { started: 10, completed: 10 },
    ]);
  });

  it("counts nothing twice after a crash between two batches", async () => {
    await insert({ endedAt: "2030-01-01T11:30:00Z", runs: 10 });
    const client = await database.connect();
    await client.query("begin");
    await client.query("select roll_up(10000)");
    // Another process skips the counting that is under way.
    expect(await rollUp()).toBe(false);
    await client.query("rollback");
    expect(busy((await pawl.series()).points)).toEqual([]);
    await rollUp();
    await rollUp();
    expect(busy((await pawl.series()).points)).toMatchObject([{ started: 10, completed: 10 }]);
  });

  it("counts runs that are deleted before their turn, once", async () => {
    await insert({ endedAt: "2030-01-01T11:58:00Z", retention: "00:00:00", runs: 3 });
    await rollUp();
    await insert({ endedAt: "2030-01-01T11:59:58Z", retention: "00:00:00", runs: 4 });
    expect(await store.sweep(1_000)).toMatchObject({ swept: 7 });
    await clockAt("2030-01-01T12:00:30Z");
    await rollUp();
    expect(busy((await pawl.series()).points)).toMatchObject([
      { started: 3, completed: 3 },
      { started: 4, completed: 4 },
    ]);
  });

  it("leaves the last seconds for the next round, because transactions may still be open", async () => {
    await insert({ endedAt: "2030-01-01T11:59:57Z" });
    await rollUp();
    expect(busy((await pawl.series()).points)).toEqual([]);
    await clockAt("2030-01-01T12:00:10Z");
    await rollUp();
    expect(busy((await pawl.series()).points)).toMatchObject([{ started: 1, completed: 1 }]);
  });

  it("keeps minutes for a day and hours for a month", async () => {
    await insert({ endedAt: "2030-01-01T11:30:00Z" });
    await rollUp();
    await clockAt("2030-01-02T13:00:00Z");
    await rollUp();
    expect(await sql("select from series where grain = 'minute' and started > 0")).toEqual([]);
    expect(await sql("select from series where grain = 'hour' and started > 0")).not.toEqual([]);
    await clockAt("2030-02-02T13:00:00Z");
    await rollUp();
    expect(await sql("select from series where started > 0")).toEqual([]);
  });

  it("samples the backlog: due runs that wait for a worker", async () => {
    await sql(
      `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at)
      select nextval('run_ids') << 6, 'runnable', 'late', 'job', 'default', 0, '1 hour', '{}',
        case when n <= 3 then clock() else clock() + interval '1 hour' end, clock() from generate_series(1, 5) n`,
    );
    await clockAt("2030-01-01T12:00:10Z");
    await rollUp();
    const backlog = async (name?: string) => (await pawl.series({ name })).points.at(-1)!.backlog;
    expect([await backlog(), await backlog("late"), await backlog("other")]).toEqual([3, 3, 0]);
  });

  it("refuses times that make no sense", async () => {
    const wrong = (options: object) =>
      expect(pawl.series(options)).rejects.toThrow(/from (must be|and to may be)/);
    await wrong({ from: noon, to: noon });
    await wrong({ from: "2029-12-01T00:00:00Z", to: noon });
    await wrong({ by: "hour", from: "2029-11-01T00:00:00Z", to: noon });
    await expect(pawl.series({ by: "day" as "hour" })).rejects.toThrow(/by must be/);
  });
});

describe("the failures", () => {
  it("are grouped by definition, code and step, with the first and last time", async () => {
    const declined = { name: "Declined", code: "card_declined", message: "no money", step: "charge" };
    await insert({
      status: "failed",
      endedAt: "2030-01-01T10:10:00Z",
      error: { ...declined, message: "first" },
    });
    await insert({ status: "failed", endedAt: "2030-01-01T11:10:00Z", error: declined });
    await insert({
      status: "failed",
      endedAt: "2030-01-01T09:10:00Z",
      error: { name: "TypeError", message: "x" },
    });
    await insert({ status: "failed", endedAt: "2029-12-30T09:10:00Z", error: declined });
    await rollUp();
    const { failures } = await pawl.failures();
    expect(failures).toEqual([
      {
        name: "work",
        code: "card_declined",
        step: "charge",
        message: "no money",
        count: 2,
        firstAt: new Date("2030-01-01T10:10:00Z"),
        lastAt: new Date("2030-01-01T11:10:00Z"),
        lastRunId: expect.any(String),
      },
      expect.objectContaining({ code: "TypeError", step: null, count: 1 }),
    ]);
    expect((await pawl.failures({ since: "2029-12-30T00:00:00Z" })).failures[0]).toMatchObject({ count: 3 });
    expect((await pawl.failures({ since: "2030-01-01T11:30:00Z" })).failures).toMatchObject([{ count: 1 }]);
    expect((await pawl.failures({ name: "other" })).failures).toEqual([]);
    expect((await pawl.runs.list({ error: failures[0]!.code })).runs).toHaveLength(3);
  });

  it("are at most 500 groups an hour: further codes count together", async () => {
    await sql(
      `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at, completed_at, expires_at, error)
      select nextval('run_ids') << 6, 'failed', 'work', 'job', 'default', 0, '1 hour', '{}', clock(), clock() - interval '1 hour',
        clock() - interval '30 minutes', clock() + interval '30 minutes', jsonb_build_object('name', 'Error', 'code', 'code ' || n)
      from generate_series(1, 900) n`,
    );
    while (await rollUp(100));
    const [row] = await sql<{ groups: number; runs: number }>(
      "select count(*)::int4 as groups, sum(failed)::int4 as runs from failures",
    );
    expect(row!.runs).toBe(900);
    expect(row!.groups).toBeLessThanOrEqual(501);
    expect((await pawl.failures({ limit: 1 })).failures).toMatchObject([{ code: "(other)" }]);
  });
});
