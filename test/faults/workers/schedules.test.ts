import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { until } from "../../support/until.js";
import { makeArena } from "../arena/arena.js";
import { wait } from "../arena/wait.js";
import { stubborn } from "../programs/shapes.js";

const arena = await makeArena();
const { fleet, sql, chance } = arena;
const pawl = connect(arena.server.url);
afterAll(() => pawl.close());

const shiftClock = new URL("../../dist/faults/programs/shift-clock.js", import.meta.url).href;
const hourMs = 3_600_000;
const names = Array.from({ length: 20 }, (_, n) => `every-second-${n}`);

const ticksOf = async (name: string): Promise<number[]> => {
  const rows = await sql<{ key: string }>(
    "select idempotency_key as key from runs where starts_with(idempotency_key, $1)",
    [`schedule/${name}/`],
  );
  return rows.map(({ key }) => Date.parse(key.split("/")[2]!)).toSorted((one, other) => one - other);
};

it("ten processes with clocks an hour off, killed again and again: each tick starts exactly one run", async () => {
  for (let size = 1; size <= 10; size++) {
    const shiftMs = [-hourMs, 0, hourMs][size % 3]!;
    await fleet.grow(size, {
      execArgv: ["--import", shiftClock],
      env: { CLOCK_SHIFT_MS: String(shiftMs) },
      serve: { queues: { default: 4 } },
    });
  }
  fleet.replaceTheDead();
  for (const name of names) {
    await pawl.schedules.set(name, {
      every: "1s",
      start: stubborn,
      input: { ms: 1 },
      overlap: "allow",
      catchUp: "all",
    });
  }
  for (let kills = 0; kills < 12; kills++) {
    await wait(300 + chance.below(700));
    fleet.killOne();
  }
  await until(
    "every schedule has fired ten times",
    async () => {
      for (const name of names) if ((await ticksOf(name)).length < 10) return false;
      return true;
    },
    60_000,
  );
  for (const name of names) await pawl.schedules.remove(name);
  await arena.quiet();
  for (const name of names) {
    const ticks = await ticksOf(name);
    // No tick has two runs, none is left out, and no clock of a worker moved one.
    expect(ticks).toEqual(ticks.map((_, n) => ticks[0]! + n * 1_000));
    const [row] = await sql<{ now: Date }>("select clock_timestamp() as now");
    expect(Math.abs(row!.now.getTime() - ticks.at(-1)!)).toBeLessThan(hourMs / 2);
  }
  await arena.judge();
}, 300_000);
