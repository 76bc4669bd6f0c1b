import { afterEach, describe, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { makeNetwork, type Network } from "../arena/network.js";
import { wait } from "../arena/wait.js";

let network!: Network;
const arena = await makeArena({
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { fleet, load } = arena;
await fleet.grow(2);

const { log } = console;
afterEach(async () => {
  await arena.quiet();
  expect(fleet.deaths()).toBe(0);
});

describe("a network that fails between the database and everybody else: nothing is lost, stuck or done twice, and no process ends", () => {
  it("all connections are reset, again and again", async () => {
    const resetting = async (): Promise<void> => {
      for (let resets = 0; resets < 10; resets++) {
        await wait(300);
        network.reset();
      }
    };
    const before = network.counts.connections;
    await load.during(resetting());
    log(`resets: ${network.counts.connections - before} connections made again`);
    expect(network.counts.connections - before).toBeGreaterThan(20);
  }, 120_000);

  it("no byte passes for longer than a lease, while connections stay open", async () => {
    const swallowing = async (): Promise<void> => {
      for (let holes = 0; holes < 2; holes++) {
        await wait(700);
        network.swallow(true);
        await wait(3_500);
        network.swallow(false);
      }
    };
    await load.during(swallowing());
  }, 120_000);

  it("everything takes 200 ms", async () => {
    network.delay(100);
    await load.during(wait(5_000));
    network.delay(0);
  }, 120_000);

  it("answers are lost, after the statement was sent or executed: who asked finds out, and no effect happens twice", async () => {
    const unknown = load.history.unknown;
    const losing = async (): Promise<void> => {
      network.loseAnswers(15);
      await wait(6_000);
      network.loseAnswers(Infinity);
    };
    await load.during(losing());
    log(
      `lost answers: ${network.counts.lostAnswers}, of them to the client: ${load.history.unknown - unknown}`,
    );
    expect(network.counts.lostAnswers).toBeGreaterThan(20);
    expect(load.history.unknown).toBeGreaterThan(unknown);
  }, 120_000);

  it("at the end every invariant holds", () => arena.judge(), 60_000);
});
