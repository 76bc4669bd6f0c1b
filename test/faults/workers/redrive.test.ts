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

const count = 10_000;

it("10,000 failed runs are redriven while workers run and are killed: each exactly once", async () => {
  const inputs = Array.from({ length: count }, () => ({ input: { ms: 1 } }));
  const started = await pawl.startMany(stubborn, inputs);
  await sql(`update runs set status = 'failed', completed_at = clock_timestamp(), expires_at = clock_timestamp() + retention,
    error = '{"name": "Error", "message": "out of order"}'`);
  await fleet.grow(3, { serve: { queues: { default: 20 }, reapInterval: "100ms" } });
  fleet.replaceTheDead();
  const { id } = await pawl.runs.bulk({ where: { name: stubborn.name, status: "failed" }, action: "rerun" });
  const killing = setInterval(() => fleet.killOne(), 200 + chance.below(200));
  await until("the operation is over", async () => (await pawl.bulk.get(id)).completedAt !== null, 120_000);
  clearInterval(killing);
  expect(fleet.kills.length).toBeGreaterThan(0);
  expect(await pawl.bulk.get(id)).toMatchObject({ status: "completed", done: count, skipped: 0, failed: 0 });
  await wait(100);
  const reruns = await sql<{ of: string; reruns: string; recorded: string }>(
    `select x.rerun_of::text as of, count(*) as reruns, count(b.run_id) as recorded from runs r join extras x on x.run_id = r.id
     left join bulk_results b on b.operation_id = $1 and b.run_id = x.rerun_of and b.rerun_id = r.id
     where x.rerun_of is not null group by x.rerun_of`,
    [id],
  );
  expect(reruns.filter((run) => run.reruns !== "1" || run.recorded !== "1")).toEqual([]);
  expect(new Set(reruns.map(({ of }) => of))).toEqual(new Set(started.map(({ runId }) => runId)));
  await until(
    "all reruns are done",
    async () => {
      const [row] = await sql<{ n: string }>(
        "select count(*) as n from runs join extras on run_id = id where rerun_of is not null and status = 'done'",
      );
      return Number(row!.n) === count;
    },
    180_000,
  );
}, 400_000);
