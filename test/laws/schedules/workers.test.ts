import { hold, job, type ScheduleDetail, type Worker } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const { pawl, serve } = testEngine(database);

const ticksOf = async (schedule: string): Promise<{ at: number; id: string }[]> => {
  const rows = await sql<{ id: string; idempotency_key: string }>(
    "select id, idempotency_key from runs where starts_with(idempotency_key, $1) order by id",
    [`schedule/${schedule}/`],
  );
  return rows.map(({ id, idempotency_key: key }) => ({ at: Date.parse(key.split("/")[2]!), id }));
};

describe("ten workers", () => {
  it("start one run a tick, and leave none out", async () => {
    const work = job({ name: "many-eyes", run: () => null });
    const fired: string[] = [];
    const workers: Worker[] = [];
    for (let n = 0; n < 10; n++) {
      const worker = await serve([work], { queues: { default: 2 } });
      workers.push(worker);
      worker.on("schedule.fired", ({ schedule, runId }) => void (schedule === "eyes" && fired.push(runId)));
    }
    await pawl.schedules.set("eyes", { every: "1s", start: work, overlap: "allow", catchUp: "all" });
    await until("it has fired five times", async () => (await ticksOf("eyes")).length >= 5, 30_000);
    await pawl.schedules.remove("eyes");
    const ticks = await ticksOf("eyes");
    const first = ticks[0]!.at;
    expect(ticks.map(({ at }) => at)).toEqual(ticks.map((_, n) => first + n * 1_000));
    // Through a server, the server fires.
    if (database.server === undefined) expect(fired.toSorted()).toEqual(ticks.map(({ id }) => id).toSorted());
    await until(
      "all have completed",
      async () => (await pawl.runs.count({ name: "many-eyes", status: "running" })) === 0,
    );
    await Promise.all(workers.map((worker) => worker.stop()));
  });
});

describe("serve", () => {
  const work = job({ name: "declared", run: () => null });

  it("sets the schedules that it declares, and removes none that another has declared", async () => {
    const one = { cron: "0 3 * * *", start: work, options: { queue: "default" } };
    const first = await serve([work], { schedules: { "declared-one": one, "declared-two": { ...one } } });
    await first.stop();
    const before = await pawl.schedules.get("declared-one");
    const second = await serve([work], { schedules: { "declared-one": one } });
    expect(await pawl.schedules.get("declared-one")).toEqual<ScheduleDetail>({
      ...before,
      problem: null,
    });
    expect((await pawl.schedules.get("declared-two")).cron).toBe("0 3 * * *");
    await second.stop();
  });

  it("refuses a wrong schedule at the call", async () => {
    const wrong = { schedules: { bad: { cron: "61 * * * *", start: work } } };
    await expect(serve([work], wrong)).rejects.toThrow(/the minute is out of range/);
    await expect(serve([work], { schedules: { bad: { every: "1h" } as never } })).rejects.toThrow(
      /start takes/,
    );
  });
});

describe("a worker", () => {
  it("reports what its schedules do as events and metrics", async () => {
    if (database.server !== undefined) return;
    const work = job({ name: "observed", queue: "observed", run: () => null });
    const worker = await serve([work]);
    const fired = new Promise((resolve) => void worker.once("schedule.fired", resolve));
    await pawl.schedules.set("seen", { every: "1s", start: work });
    expect(await fired).toMatchObject({ schedule: "seen", name: "observed", at: expect.any(Date) });
    await pawl.schedules.remove("seen");
    const text = await worker.metrics();
    expect(text).toMatch(/pawl_schedule_fired_total\{schedule="seen"\} \d/);
    expect(text).toMatch(/pawl_schedule_lateness_seconds_count \d/);
  });
});

describe("in a held database", () => {
  it("no schedule fires, and catchUp decides once it is released", async () => {
    const work = job({ name: "held-back", run: () => null });
    await serve([work]);
    await hold({ url: database.directUrl });
    await pawl.schedules.set("held-back", { every: "1s", start: work });
    await until("its tick has passed", async () => {
      const [late] = await sql<{ is: boolean }>(
        "select due_at < clock_timestamp() - interval '1500 ms' as is from schedules where name = 'held-back'",
      );
      return late!.is;
    });
    expect(await ticksOf("held-back")).toEqual([]);
    await hold.release({ url: database.directUrl });
    await until("it fires", async () => (await ticksOf("held-back")).length > 0);
    await pawl.schedules.remove("held-back");
  });
});
