/** How the runs that somebody waits for are polled: each once for all who wait, and none before the others have had their turn. */
import { connect } from "pawl";
import { Hub } from "../../packages/pawl/dist/local/hub.js";
import { Results } from "../../packages/pawl/dist/local/results.js";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { until } from "../support/until.js";

const { url, sql, store } = await testDatabase();
const pawl = connect(url);
afterAll(() => pawl.close());

/** Results whose polls are noted, and then go to the database. */
function noted(): { results: Results; polls: string[][] } {
  const polls: string[][] = [];
  const ended = (runIds: readonly string[]): ReturnType<typeof store.ended> => {
    polls.push([...runIds]);
    return store.ended(runIds);
  };
  const results = new Results({ ended }, new Hub(), silent);
  afterAll(() => results.close(new Error("over")));
  return { results, polls };
}

it("no run is asked for a second time before every other that is due was asked for once", async () => {
  await sql(
    `insert into runs (id, status, name, queue, priority, retention, input, eligible_at, inserted_at)
      select id, 'runnable', 'endless', 'default', 0, interval '0', 'null', 'infinity', now()
      from generate_series(1000000, 1019999) id`,
  );
  const { runId } = await pawl.start("endless");
  await pawl.runs.cancel(runId);
  const { results, polls } = noted();
  const waits = Array.from({ length: 20_000 }, (_, index) => results.wait(String(1_000_000 + index), null));
  const last = results.wait(runId, null);
  for (const wait of waits) wait.catch(() => {});
  expect(await last).toMatchObject({ runId, phase: "cancelled" });
  const before = polls
    .slice(
      0,
      polls.findIndex((runIds) => runIds.includes(runId)),
    )
    .flat();
  expect(before.length).toBe(new Set(before).size);
});

it("a run is asked for once, however many wait for it", async () => {
  const { runId } = await pawl.start("endless");
  const { results, polls } = noted();
  const waits = Array.from({ length: 3_000 }, () => results.wait(runId, null));
  await until("it was asked for", () => polls.length > 2);
  await pawl.runs.cancel(runId);
  expect(new Set((await Promise.all(waits)).map((ended) => ended?.phase))).toEqual(new Set(["cancelled"]));
  expect(polls.every((runIds) => runIds.length === 1)).toBe(true);
});
