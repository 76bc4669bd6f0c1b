import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { linear } from "../programs/definitions.js";
import { gather } from "../programs/shapes.js";

const arena = await makeArena();
const pawl = connect(arena.server.url, { pool: 1 });
afterAll(() => pawl.close());

const callers = 400;

it("400 callers share one connection: all of them start, signal and get their result", async () => {
  await arena.fleet.grow(1);
  const call = async (n: number): Promise<unknown> => {
    if (n % 2 === 0) {
      const { runId } = await pawl.start(linear, { path: [] });
      return (await pawl.result(runId, { timeout: "250s" })).length;
    }
    const { runId } = await pawl.start(gather, { want: 3 });
    await Promise.all([0, 1, 2].map((item) => pawl.signal(runId, "item", { n: item })));
    return (await pawl.result(runId, { timeout: "250s" })).toSorted();
  };
  const results = await Promise.all(Array.from({ length: callers }, (_, n) => call(n)));
  expect(results).toEqual(Array.from({ length: callers }, (_, n) => (n % 2 === 0 ? 5 : [0, 1, 2])));
  await arena.judge();
}, 300_000);
