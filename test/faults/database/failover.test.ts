import { afterAll, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { makeNetwork, type Network } from "../arena/network.js";
import { makeStandby, primarySettings, startReadOnly } from "../arena/standby.js";
import { wait } from "../arena/wait.js";

let network!: Network;
const arena = await makeArena({
  settings: primarySettings,
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { server, fleet, load } = arena;
const standby = await makeStandby(arena, { isSynchronous: true });
afterAll(() => standby.stop());

it("a failover to a synchronous standby, and an old primary that comes back and takes no writes: nothing acknowledged is lost", async () => {
  await fleet.grow(2);
  const failing = async (): Promise<void> => {
    await wait(2_000);
    await server.kill();
    // Everybody is sent to it before it takes writes.
    network.leadTo(standby.url);
    arena.moveTo(standby.url);
    await wait(1_500);
    await standby.promote();
    await wait(2_000);
    await startReadOnly(server);
    network.leadTo(server.url);
    await wait(2_500);
    network.leadTo(standby.url);
    await wait(1_000);
  };
  const before = load.history.unknown;
  await load.during(failing());
  await arena.quiet();
  expect(load.history.unknown).toBeGreaterThan(before);
  expect(fleet.logged("read-only")).toBeGreaterThan(0);
  expect(fleet.deaths()).toBe(0);
  await arena.judge();
}, 180_000);
