import { expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { wait } from "../arena/wait.js";

const arena = await makeArena();
const { fleet, load } = arena;

const kills = 30;

it("a worker is killed by -9 every 300 ms with every shape under load: every run ends as it does without", async () => {
  fleet.replaceTheDead();
  await fleet.grow(3);
  const killing = async (): Promise<void> => {
    for (let killed = 0; killed < kills;) {
      await wait(300);
      if (fleet.killOne()) killed++;
    }
  };
  await load.during(killing(), 4, 50);
  await arena.quiet(120_000);
  expect(fleet.deaths()).toBeGreaterThanOrEqual(kills);
  const [told] = await arena.ledger<{ again: number }>(
    "select count(*) - count(distinct (run_id, step)) as again from public.ledger",
  );
  console.info(
    `${kills} workers killed, ${load.history.started.length} runs, ${told!.again} steps entered again`,
  );
  await arena.judge();
}, 240_000);
