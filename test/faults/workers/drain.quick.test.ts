import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { until } from "../../support/until.js";
import { makeArena } from "../arena/arena.js";
import { stubborn } from "../programs/shapes.js";
import { wait } from "../arena/wait.js";

const arena = await makeArena();
const { fleet, load, sql } = arena;
const pawl = connect(arena.server.url);
afterAll(() => pawl.close());

/** A lease that a machine with other work does not cost: that would burn attempts too. */
const patient = { lease: "20s", heartbeat: "1s" } as const;

it("workers told to stop, and killed when they have: no claim is left, no attempt burned", async () => {
  await fleet.grow(2, { serve: { ...patient, drainTimeout: "500ms" }, env: { STAYS: "1" } });
  const started = await pawl.startMany(
    stubborn,
    Array.from({ length: 60 }, (_, n) => ({ input: { ms: n % 2 === 0 ? 300 : 6_000 } })),
  );
  await load.during(wait(500));
  const executing = "select from runs where name = 'stubborn' and status = 'executing'";
  await until("some are under way", async () => (await sql(executing)).length > 0);
  fleet.signal("SIGTERM");
  await until("all have stopped", () => fleet.stopped() === 2, 30_000);
  const held =
    "select id, name, status, turn, partition_key, locked_by from runs where locked_by is not null";
  expect(await sql(held)).toEqual([]);
  await fleet.stop();

  // Others finish what was left, as if it had never been begun.
  await fleet.grow(2, { serve: patient });
  await arena.quiet();
  const ids = started.map(({ runId }) => runId);
  expect(await sql("select id from runs where attempt <> 0 or crashes <> 0")).toEqual([]);
  expect(await sql("select id from runs where id = any ($1) and result = '0'", [ids])).toHaveLength(60);
  expect(fleet.logged("runs of dead workers")).toBe(0);
  await arena.judge();
}, 300_000);
