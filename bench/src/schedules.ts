/**
 * `schedules`: how late the ticks of schedules fire on an idle worker in the same process. The
 * schedules fire once a second each, and their jitter spreads them over that second. Lateness is the
 * database's clock, less the tick and the offset of its schedule: once when the run is started (the
 * event `schedule.fired`), and once when its code begins, which includes one query.
 */

import { connect, job, serve } from "pawl";
import pg from "pg";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { percentiles } from "./figures.js";
import { until } from "./observe.js";

/** So many ticks a second: an idle system, but figures within half a minute. */
const schedulesAtOnce = 20;
const clockConnections = 4;

export const schedules: Bench = {
  defaults: { count: 400, quickCount: 60, concurrency: 100 },
  async measure({ database, count, concurrency, profiling, signal }: BenchRequest): Promise<Figure[]> {
    const clock = new pg.Pool({ connectionString: database.url, max: clockConnections });
    const firedMs: number[] = [];
    const begunMs: number[] = [];
    const offsets = new Map<string, number>();
    const ticking = job({
      name: "bench-ticking",
      run: async (ctx, _input: object) => {
        const { name, at } = ctx.schedule!;
        begunMs.push((await databaseMs(clock)) - at.getTime() - offsets.get(name)!);
        return null;
      },
    });
    const worker = serve([ticking], { url: database.url, queues: { default: concurrency } });
    worker.on("schedule.fired", ({ lateMs }) => firedMs.push(lateMs));
    const pawl = connect(database.url);
    try {
      await worker.ready;
      const names = Array.from({ length: schedulesAtOnce }, (_, index) => `bench-${index}`);
      for (const name of names) {
        const options = { every: "1s", jitter: "1s", start: ticking, input: {} } as const;
        offsets.set(name, (await pawl.schedules.set(name, options)).offsetMs);
      }
      await until(async () => begunMs.length >= schedulesAtOnce, signal); // to warm up
      firedMs.length = begunMs.length = 0;
      await profiling.server("schedules", database, () => until(async () => begunMs.length >= count, signal));
      for (const name of names) await pawl.schedules.remove(name);
      return [
        ...percentiles("late_", "lateness, tick to the code of its run", begunMs),
        ...percentiles("fired_late_", "lateness, tick to the start of its run", firedMs),
      ];
    } finally {
      await pawl.close();
      await worker.stop();
      await clock.end();
    }
  },
};

async function databaseMs(clock: pg.Pool): Promise<number> {
  const { rows } = await clock.query<{ ms: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms",
  );
  return rows[0]!.ms;
}
