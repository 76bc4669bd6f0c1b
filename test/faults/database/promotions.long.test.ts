import { expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { makeNetwork, type Network } from "../arena/network.js";
import { makePromotions } from "../arena/promotions.js";
import { primarySettings } from "../arena/standby.js";
import { wait } from "../arena/wait.js";

let network!: Network;
const arena = await makeArena({
  settings: primarySettings,
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { fleet, load } = arena;
const promotions = makePromotions(arena, network);

const times = 10;

it("10 failovers to synchronous standbys, one after the other: nothing acknowledged is lost", async () => {
  await fleet.grow(2);
  const failing = async (): Promise<void> => {
    for (let promoted = 0; promoted < times; promoted++) {
      await wait(1_000);
      await promotions.failOver(1_000);
      console.info(`${promoted + 1} promotions, ${load.history.started.length} runs acknowledged`);
    }
  };
  await load.during(failing(), 4, 50);
  await arena.quiet(120_000);
  expect(load.history.unknown).toBeGreaterThan(0);
  expect(fleet.deaths()).toBe(0);
  await arena.judge();
}, 600_000);
