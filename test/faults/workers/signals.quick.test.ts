import { connect, RunEnded } from "pawl";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { collect } from "../programs/shapes.js";

const arena = await makeArena();
const { fleet, chance, sql } = arena;
const pawl = connect(arena.server.url);
afterAll(() => pawl.close());

const runs = 100;
const signalsEach = 100;
const atATime = 100;

it("10,000 signals, some doubled, in any order, before anybody waits and after: none is lost, none counts twice", async () => {
  const started = await pawl.startMany(
    collect,
    Array.from({ length: runs }, () => ({ input: { want: signalsEach } })),
  );
  const sends = started.flatMap(({ runId }) =>
    Array.from({ length: signalsEach }, (_, n) => n).flatMap((n) =>
      Array.from({ length: 1 + (chance.below(4) === 0 ? 1 : 0) }, () => ({ runId, n })),
    ),
  );
  for (let last = sends.length - 1; last > 0; last--) {
    const other = chance.below(last + 1);
    [sends[last], sends[other]] = [sends[other]!, sends[last]!];
  }
  const told = { delivered: 0, repeated: 0 };
  let next = 0;
  const send = async (end: number): Promise<void> => {
    while (next < end) {
      const { runId, n } = sends[next++]!;
      try {
        const { delivered } = await pawl.signal(runId, "item", { n }, { dedupKey: `item-${n}` });
        told[delivered ? "delivered" : "repeated"]++;
      } catch (error) {
        // All of them had come before.
        if (!(error instanceof RunEnded)) throw error;
        told.repeated++;
      }
    }
  };
  const sendUpTo = (end: number) => Promise.all(Array.from({ length: atATime }, () => send(end)));
  // A third before there is any worker.
  await sendUpTo(Math.floor(sends.length / 3));
  await fleet.grow(2);
  await sendUpTo(sends.length);
  await arena.quiet();
  console.info(`signals: ${told.delivered} delivered, ${told.repeated} repetitions`);
  expect(told.delivered).toBe(runs * signalsEach);
  expect(told.delivered + told.repeated).toBe(sends.length);
  const every = JSON.stringify(Array.from({ length: signalsEach }, (_, n) => n));
  const ended = await sql<{ status: string; result: number[] }>(
    "select status, result from runs where name = 'collect'",
  );
  expect(ended).toHaveLength(runs);
  const wrong = ended.filter(
    ({ status, result }) => status !== "done" || JSON.stringify(result.toSorted((a, b) => a - b)) !== every,
  );
  expect(wrong).toEqual([]);
  // Late ones hear that it has ended, or that they came before.
  const late = await Promise.allSettled(started.map(({ runId }) => pawl.signal(runId, "item", { n: 1 })));
  expect(late.filter(({ status }) => status === "fulfilled")).toEqual([]);
  await arena.judge();
}, 300_000);
