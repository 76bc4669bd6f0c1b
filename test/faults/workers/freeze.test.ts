import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { until } from "../../support/until.js";
import { makeArena } from "../arena/arena.js";
import { makeNetwork, type Network } from "../arena/network.js";
import { asking } from "../programs/shapes.js";
import { wait } from "../arena/wait.js";

let network!: Network;
const arena = await makeArena({
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { fleet, load, sql, ledger } = arena;
const pawl = connect(arena.server.url);
afterAll(() => pawl.close());

const blindWatch = new URL("../../dist/faults/programs/blind-watch.js", import.meta.url).href;
const wanted = 50;
const maxFreezes = 25;

it("workers stopped for longer than their lease write nothing over their successors: 50 tries, all refused and counted", async () => {
  // Blind to the time that has passed, so that nothing but the guard in the database is left.
  await fleet.grow(2, { execArgv: ["--import", blindWatch] });
  let freezes = 0;
  const started: string[] = [];
  const freezing = async (): Promise<void> => {
    while (network.counts.staleWrites < wanted && freezes < maxFreezes) {
      const runs = await pawl.startMany(
        asking,
        Array.from({ length: 60 }, () => ({ input: { ms: 1_000 } })),
      );
      started.push(...runs.map(({ runId }) => runId));
      const executing = "select from runs where name = 'asking' and status = 'executing'";
      await until("many are under way", async () => (await sql(executing)).length > 40, 30_000);
      // Long enough that another has taken over what it holds.
      expect(fleet.freezeOne(3_000)).toBe(true);
      freezes++;
      await wait(3_300);
      await until("all have ended", async () => (await sql(executing)).length === 0, 60_000);
    }
  };
  await load.during(freezing(), 3, 100);
  await arena.quiet();
  const stale = network.counts.staleWrites;
  console.info(`${freezes} freezes, ${stale} stale writes, all refused`);
  expect(stale).toBeGreaterThanOrEqual(wanted);
  expect(fleet.deaths()).toBe(0);
  // Each result is that of the attempt that was entered last: none of one before it.
  const results = await sql<{ id: string; status: string; result: number }>(
    "select id, status, result from runs where name = 'asking'",
  );
  const last = await ledger<{ run_id: string; attempt: number }>(
    "select run_id, max(attempt) as attempt from public.ledger where step = 'asking' group by 1",
  );
  const lastOf = new Map(last.map(({ run_id, attempt }) => [run_id, attempt]));
  expect(results).toHaveLength(started.length);
  expect(results.filter(({ id, status, result }) => status !== "done" || result !== lastOf.get(id))).toEqual(
    [],
  );
  await arena.judge();
}, 240_000);
