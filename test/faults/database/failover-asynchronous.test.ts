import { afterAll, expect, it } from "vitest";
import { until } from "../../support/until.js";
import { expectInvariants, makeArena } from "../arena/arena.js";
import { afterStop, invariants } from "../arena/invariants.js";
import { makeNetwork, type Network } from "../arena/network.js";
import { makeStandby, primarySettings } from "../arena/standby.js";
import { wait } from "../arena/wait.js";

let network!: Network;
const arena = await makeArena({
  settings: primarySettings,
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { server, fleet, load, sql, ledger, chance } = arena;
const link = await makeNetwork(server.url, chance);
const standby = await makeStandby(arena, { isSynchronous: false, link: link.url });
afterAll(() => standby.stop());

it("a failover to a standby that lags behind loses what it had not got, and nothing else: the rest ends as it should", async () => {
  await fleet.grow(2);
  const failing = async (): Promise<void> => {
    await wait(2_000);
    link.swallow(true);
    const known = load.history.started.length;
    await until(
      "much is acknowledged that the standby has not got",
      () => load.history.started.length > known + 20,
      60_000,
    );
    await server.kill();
    network.leadTo(standby.url);
    arena.moveTo(standby.url);
    await standby.promote();
    await wait(2_000);
  };
  load.mayLose = true;
  await load.during(failing());
  // Signals may be among what was lost: who waits for them is not helped by waiting longer.
  const open =
    "select id, name, status, hold, crashes, locked_by, eligible_at - clock_timestamp() as due, awaits from runs where completed_at is null and name <> 'gather'";
  await until("all others have ended", async () => (await sql(open)).length === 0, 120_000).catch(
    async () => {
      expect(await sql(open), `seed ${chance.seed}: still open`).toEqual([]);
    },
  );
  await sql("select cancel(id, null, false) from runs where completed_at is null");
  expect(fleet.deaths()).toBe(0);

  // The number of a run that was lost may be given to another.
  const rows = await sql<{ id: string; idempotency_key: string }>(
    "select id, idempotency_key from runs where idempotency_key is not null",
  );
  const there = new Set(rows.map((row) => `${row.id} ${row.idempotency_key}`));
  const kept = load.history.started.filter(({ runId, key }) => there.has(`${runId} ${key}`));
  const lost = load.history.started.length - kept.length;
  console.info(`${lost} of ${load.history.started.length} acknowledged starts were lost with the primary`);
  expect(lost).toBeGreaterThan(0);
  // What was lost may have had effects, under a number that is another's now.
  const waited = kept.filter(({ definition }) => definition.name !== "gather");
  const evidence = {
    sql,
    ledger,
    history: { ...load.history, started: waited },
    seenEnds: new Map<string, string>(),
  };
  const all = invariants.filter(
    ({ says }) => !/^(nothing was done that was not started|versions are pinned|causality)/.test(says),
  );
  await expectInvariants(all, evidence, chance.seed);
  await fleet.drain();
  await expectInvariants(afterStop, evidence, chance.seed);
}, 300_000);
