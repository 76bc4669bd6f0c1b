import { expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { wait } from "../arena/wait.js";

const arena = await makeArena();
const { server, fleet, load } = arena;

it("the database is shut down at once and started again, and again: nothing is lost, stuck or done twice, and no process ends", async () => {
  await fleet.grow(2);
  const restarting = async (): Promise<void> => {
    for (let restarts = 0; restarts < 4; restarts++) {
      await wait(1_000);
      await server.restart({ mode: "immediate" });
    }
  };
  await load.during(restarting());
  await arena.quiet();
  expect(fleet.deaths()).toBe(0);
  expect(load.history.unknown).toBeGreaterThan(0);
  await arena.judge();
}, 300_000);
