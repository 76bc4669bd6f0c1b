import { connect, job, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const index = job({ name: "index", input: type<{ n: number }>(), run: (_ctx, { n }) => n });
const parked = job({ name: "parked", queue: "nobody", run: () => 0 });

interface Times {
  delay: number;
  most: number | null;
}
/** Milliseconds from the start of a run until it is due, and until it must begin. */
async function timesOf(runId: string): Promise<Times> {
  const [row] = await sql<Times>(
    `select extract(epoch from eligible_at - inserted_at)::float8 * 1000 as delay,
       extract(epoch from debounce_until - inserted_at)::float8 * 1000 as most
     from runs join extras on run_id = id where id = $1`,
    [runId],
  );
  return row!;
}
const setBack = (runId: string, interval: string): Promise<unknown> =>
  sql(
    `with moved as (update runs set inserted_at = inserted_at - $2::interval, eligible_at = eligible_at - $2::interval where id = $1)
     update extras set debounce_until = debounce_until - $2::interval, deadline_at = deadline_at - $2::interval where run_id = $1`,
    [runId, interval],
  );

describe("a debounced start", () => {
  it("replaces the input of the run that has not begun, and answers that run", async () => {
    const debounce = { key: "user-1", delay: "10m" } as const;
    const first = await pawl.start(index, { n: 1 }, { debounce });
    expect(first.created).toBe(true);
    expect(await pawl.start(index, { n: 2 }, { debounce })).toEqual({ ...first, created: false });
    expect((await pawl.runs.get(first.runId)).input).toEqual({ n: 2 });
    expect(await pawl.runs.count({ name: "index" })).toBe(1);
  });

  it("moves the time of the run to its own delay, and its deadline with it", async () => {
    const debounce = { key: "moved", delay: "10m" } as const;
    const { runId } = await pawl.start(parked, 1, { debounce, timeout: "1h" });
    expect((await timesOf(runId)).delay).toBe(600_000);
    await setBack(runId, "5 minutes");
    await pawl.start(parked, 2, { debounce });
    const { delay } = await timesOf(runId);
    expect(delay).toBeGreaterThanOrEqual(900_000);
    const { deadlineAt, eligibleAt } = await pawl.runs.get(runId);
    expect(deadlineAt!.getTime() - eligibleAt!.getTime()).toBe(3_600_000);
  });

  it("never moves it later than maxDelay after the first start", async () => {
    const debounce = { key: "bounded", delay: "10m", maxDelay: "12m" } as const;
    const { runId } = await pawl.start(parked, 1, { debounce });
    await setBack(runId, "5 minutes");
    await pawl.start(parked, 2, { debounce: { ...debounce, maxDelay: "1d" } });
    const { delay, most } = await timesOf(runId);
    expect([delay, most]).toEqual([720_000, 720_000]);
  });

  it("starts another run once the first has begun, also when that one is retried", async () => {
    const flaky = job({
      name: "flaky",
      queue: "flaky",
      backoff: () => "1h",
      run: () => {
        throw new Error("again");
      },
    });
    const debounce = { key: "begun", delay: 0 } as const;
    const first = await pawl.start(flaky, undefined, { debounce });
    const worker = await serve([flaky]);
    await until("it is retried", async () => {
      const { phase, attempt } = await pawl.runs.get(first.runId);
      return phase === "runnable" && attempt === 1;
    });
    await worker.stop();
    const second = await pawl.start(flaky, undefined, { debounce });
    expect(second.created).toBe(true);
    expect(await pawl.start(flaky, undefined, { debounce })).toEqual({ ...second, created: false });
  });

  it("starts another run once the first is cancelled", async () => {
    const debounce = { key: "cancelled", delay: "1h" } as const;
    const { runId } = await pawl.start(parked, 1, { debounce });
    await pawl.runs.cancel(runId);
    expect((await pawl.start(parked, 2, { debounce })).created).toBe(true);
  });

  it("has a key per definition name", async () => {
    const debounce = { key: "shared", delay: "1h" } as const;
    expect((await pawl.start(parked, 1, { debounce })).created).toBe(true);
    expect((await pawl.start(index, { n: 1 }, { debounce })).created).toBe(true);
  });

  it("runs with the last input when its time has come", async () => {
    const debounce = { key: "runs", delay: 300 } as const;
    const { runId } = await pawl.start(index, { n: 1 }, { debounce });
    await pawl.start(index, { n: 2 }, { debounce });
    await serve([index]);
    expect(await pawl.result(runId)).toBe(2);
  });

  it("keeps the tags of the first start", async () => {
    const debounce = { key: "tagged", delay: "1h" } as const;
    const { runId } = await pawl.start(parked, 1, { debounce, tags: { n: "1" } });
    await pawl.start(parked, 2, { debounce, tags: { n: "2" } });
    expect((await pawl.runs.get(runId)).tags).toEqual({ n: "1" });
  });

  it("in one startMany with others: the last of a key counts, the others start as usual", async () => {
    const debounce = { key: "many", delay: "1h" } as const;
    const started = await pawl.startMany(parked, [
      { input: 1, debounce, tags: { which: "first" } },
      { input: 2, uniqueKey: "beside" },
      { input: 3, debounce },
      { input: 4 },
    ]);
    expect(started.map(({ created }) => created)).toEqual([true, true, false, true]);
    expect(started[2]!.runId).toBe(started[0]!.runId);
    const [one, two, , four] = await Promise.all(started.map(({ runId }) => pawl.runs.get(runId)));
    expect([one!.input, two!.input, four!.input]).toEqual([3, 2, 4]);
    expect(one!.tags).toEqual({ which: "first" });
  });

  it("of one key by many clients at once gives one run, with an input of one of them", async () => {
    const clients = Array.from({ length: 4 }, () => connect(database.url));
    const debounce = { key: "crowd", delay: "1h" } as const;
    const started = await Promise.all(
      Array.from({ length: 200 }, (_, n) => clients[n % 4]!.start(parked, n, { debounce })),
    );
    expect(new Set(started.map(({ runId }) => runId)).size).toBe(1);
    expect(started.filter(({ created }) => created)).toHaveLength(1);
    await Promise.all(clients.map((client) => client.close()));
  });
});
