import { connect, type Pawl, Unavailable } from "pawl";
import { afterAll, expect, it } from "vitest";
import { until } from "../../support/until.js";
import { makeArena } from "../arena/arena.js";
import { percentile, watchLag } from "../arena/figures.js";
import { stubborn } from "../programs/shapes.js";
import { wait } from "../arena/wait.js";

const arena = await makeArena();
const { server, fleet, load, ledger } = arena;
const pawl = connect(server.url);
afterAll(() => pawl.close());

const restarts = 30;
const resumeMs = 3_000;

it("the database is shut down at once and started again 30 times: claims resume within 3 s after it accepts, and nothing is lost", async () => {
  await fleet.grow(2);
  const lag = watchLag();
  const resumed: number[] = [];
  const restarting = async (): Promise<void> => {
    for (let times = 0; times < restarts; times++) {
      await wait(400);
      await server.restart({ mode: "immediate" });
      resumed.push(await untilClaimed(pawl, Date.now()));
    }
  };
  await load.during(restarting(), 4, 50);
  await arena.quiet();
  const lagMs = lag();
  const longest = percentile(resumed, 100);
  console.info(
    `${restarts} restarts: claims resumed after p50 ${percentile(resumed, 50)} ms, at most ${longest} ms ` +
      `(bar ${resumeMs} ms; the machine was late by up to ${Math.round(lagMs)} ms)`,
  );
  expect(longest).toBeLessThan(resumeMs + 10 * lagMs);
  expect(fleet.deaths()).toBe(0);
  await arena.judge();
}, 240_000);

/** How long it takes until a run is executed that is started now. */
async function untilClaimed(client: Pawl, sinceMs: number): Promise<number> {
  const key = `after ${sinceMs}`;
  const runId = await until("a run is started", async () => {
    try {
      return (await client.start(stubborn, { ms: 0 }, { idempotencyKey: key })).runId;
    } catch (error) {
      if (error instanceof Unavailable) return null;
      throw error;
    }
  });
  return until(
    "it is executed",
    async () => {
      const told = "select min(at) as at from public.ledger where run_id = $1";
      const [row] = await ledger<{ at: Date | null }>(told, [runId]);
      return row!.at === null ? null : Math.max(1, row!.at.getTime() - sinceMs);
    },
    60_000,
  );
}
