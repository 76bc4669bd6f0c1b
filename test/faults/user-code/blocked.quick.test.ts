import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { blocking, stubborn } from "../programs/shapes.js";

const arena = await makeArena();
const { fleet, ledger } = arena;
const pawl = connect(arena.server.url);
afterAll(() => pawl.close());

it("an event loop that is blocked for three leases costs no claim: nothing is executed again", async () => {
  await fleet.grow(2, { serve: { lease: "3s" } });
  const beside = await pawl.startMany(
    stubborn,
    Array.from({ length: 30 }, () => ({ input: { ms: 3_000 } })),
  );
  const blocked = await pawl.startMany(
    blocking,
    Array.from({ length: 2 }, () => ({ input: { ms: 9_000 } })),
  );
  const runs = [...beside, ...blocked].map(({ runId }) => runId);
  const attempts = await Promise.all(runs.map((runId) => pawl.result(runId, { timeout: "250s" })));
  expect(attempts).toEqual(runs.map(() => 0));
  expect(await ledger("select from public.ledger")).toHaveLength(runs.length);
  expect(fleet.logged("the lease is lost")).toBe(0);
  expect(fleet.logged("runs of dead workers")).toBe(0);
  await arena.judge();
}, 300_000);
