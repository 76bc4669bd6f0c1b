import { expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { makeNetwork, type Network } from "../arena/network.js";
import { wait } from "../arena/wait.js";

let network!: Network;
const arena = await makeArena({
  // What is committed asynchronously stays in memory for as long as nobody else needs it on disk.
  settings: { wal_writer_delay: "10s" },
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { server, fleet, load } = arena;

const crashes = 5;

it("the database crashes right after a claim that it has not yet on disk: the run is claimed again, and nothing of the first claim counts", async () => {
  await fleet.grow(2);
  const crashing = async (): Promise<void> => {
    for (let crash = 0; crash < crashes; crash++) {
      await wait(500);
      await new Promise<void>((resolve) => {
        network.onClaim = resolve;
      });
      network.onClaim = null;
      await server.kill();
      await server.start();
    }
  };
  await load.during(crashing());
  await arena.quiet();
  expect(fleet.deaths()).toBe(0);
  await arena.judge();
}, 150_000);
