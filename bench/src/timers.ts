/**
 * `timers`: how late timers fire on an idle worker in the same process. Half are starts with a
 * delay, half waits with a timeout, spread at random over some seconds. A timer's lateness is the
 * database's clock when its step begins, less its due time, so it includes one query's way to the
 * database. Then the cost of a claim beside a million runs that are not due.
 */

import { connect, job, machine, serve, type } from "pawl";
import pg from "pg";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { measureClaims } from "./claims.js";
import { percentiles } from "./figures.js";
import { emptyDatabase } from "./observe.js";

const spreadMs = { usual: 10_000, quick: 2_000 };
const restMs = 500;
const clockConnections = 4;
const notDue = { usual: 1_000_000, quick: 50_000 };

export const timers: Bench = {
  defaults: { count: 500, quickCount: 100, concurrency: 100 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { delaysMs, timeoutsMs } = await fireAll(request);
    await emptyDatabase(request.database.observer);
    const claims = await measureClaims(request, request.quick ? notDue.quick : notDue.usual);
    return [
      ...percentiles("late_", "lateness", [...delaysMs, ...timeoutsMs]),
      ...percentiles("delay_late_", "lateness of delayed starts", delaysMs),
      ...percentiles("timeout_late_", "lateness of timeouts", timeoutsMs),
      ...claims,
    ];
  },
};

async function fireAll({ database, count, concurrency, quick, profiling }: BenchRequest) {
  const clock = new pg.Pool({ connectionString: database.url, max: clockConnections });
  const delaysMs: number[] = [];
  const timeoutsMs: number[] = [];
  const delayed = job({
    name: "bench-delayed",
    run: async (ctx, _input: object) => {
      delaysMs.push(await lateness(clock, ctx.runId));
      return null;
    },
  });
  const timed = machine({
    name: "bench-timed",
    initial: "wait",
    state: type<{ timeoutMs: number }>(),
    steps: {
      wait: (ctx) => ctx.awaitSignal("never", "woken", ctx.state, { timeout: ctx.state.timeoutMs }),
      woken: async (ctx) => {
        timeoutsMs.push(await lateness(clock, ctx.runId));
        return ctx.done();
      },
    },
  });
  const worker = serve([delayed, timed], { url: database.url, queues: { default: concurrency } });
  const pawl = connect(database.url);
  const half = Array.from({ length: Math.ceil(count / 2) });
  const someMs = (): number => restMs + Math.random() * (quick ? spreadMs.quick : spreadMs.usual);
  try {
    await worker.ready;
    await profiling.server("timers", database, async () => {
      const started = [
        ...(await pawl.startMany(
          timed,
          half.map(() => ({ input: { timeoutMs: someMs() } })),
        )),
        ...(await pawl.startMany(
          delayed,
          half.map(() => ({ input: {}, delay: someMs() })),
        )),
      ];
      for (const { runId } of started) await pawl.result(runId, { timeout: "60s" });
    });
    return { delaysMs, timeoutsMs };
  } finally {
    await pawl.close();
    await worker.stop();
    await clock.end();
  }
}

/** A claim leaves `eligible_at` as it was: the time at which the run was due. */
async function lateness(clock: pg.Pool, runId: string): Promise<number> {
  const { rows } = await clock.query<{ ms: number }>(
    `select (extract(epoch from clock_timestamp() - r.eligible_at) * 1000)::float8 as ms
     from pawl.runs r where r.id = $1`,
    [runId],
  );
  return rows[0]!.ms;
}
