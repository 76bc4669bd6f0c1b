import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { nap, stubborn } from "../programs/shapes.js";
import { wait } from "../arena/wait.js";

const arena = await makeArena();
const { fleet, load, sql, ledger } = arena;
const pawl = connect(arena.server.url);
afterAll(() => pawl.close());

const shiftClock = new URL("../../dist/faults/programs/shift-clock.js", import.meta.url).href;
const hourMs = 3_600_000;
const delayMs = 2_000;

const clock = async (): Promise<number> => {
  const [row] = await sql<{ at: Date }>("select clock_timestamp() as at");
  return row!.at.getTime();
};

it("workers whose clocks are an hour off, both ways: no timer comes early, and none is lost", async () => {
  for (const [index, shiftMs] of [-hourMs, hourMs].entries()) {
    await fleet.grow(index + 1, {
      execArgv: ["--import", shiftClock],
      env: { CLOCK_SHIFT_MS: String(shiftMs) },
    });
  }
  const begunAt = await clock();
  const delayed = await pawl.startMany(
    stubborn,
    Array.from({ length: 100 }, () => ({ input: { ms: 1 }, delay: delayMs })),
  );
  const naps = await pawl.startMany(
    nap,
    Array.from({ length: 100 }, () => ({ input: { ms: delayMs } })),
  );
  await load.during(wait(4_000));
  await arena.quiet();
  const ids = delayed.map(({ runId }) => runId);
  const told = await ledger<{ at: Date }>(
    "select min(at) as at from public.ledger where run_id = any ($1) group by run_id",
    [ids],
  );
  expect(told).toHaveLength(ids.length);
  // The ledger is on the same machine. A millisecond is what a Date does not show.
  expect(told.filter(({ at }) => at.getTime() - begunAt < delayMs - 1)).toEqual([]);
  expect(naps).toHaveLength(100);
  const served = await ledger<{ pid: number }>("select distinct pid from public.ledger");
  expect(served).toHaveLength(2);
  await arena.judge();
}, 300_000);
