import { expect, it } from "vitest";
import { makeArena } from "./arena.js";

const arena = await makeArena();
const { server, fleet, load } = arena;

it("the database is shut down at once and started again, and again: nothing is lost, stuck or done twice, and no process ends", async () => {
  await fleet.grow(2);
  const loading = load.start(240, 12);
  for (let restarts = 0; restarts < 3; restarts++) {
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await server.restart({ mode: "immediate" });
  }
  await loading;
  await arena.quiet();
  expect(fleet.deaths()).toBe(0);
  expect(load.history.unknown).toBeGreaterThan(0);
  await arena.judge();
}, 150_000);
