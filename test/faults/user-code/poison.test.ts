import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { type Act, deadly, harmful, poisons } from "../programs/poison.js";

const arena = await makeArena();
const { fleet, load } = arena;
const pawl = connect(arena.server.url);
afterAll(() => pawl.close());
fleet.replaceTheDead();
// A lease that a machine with other work does not cost: here an attempt that is lost is a failure.
await fleet.grow(2, {
  serve: { maxStepDuration: "5s", lease: "5s", heartbeat: "500ms" },
  execArgv: ["--max-old-space-size=128"],
});

/** What the error of a run says: its code, or a part of its message. */
const tellings: Partial<Record<Act, RegExp>> = {
  undefined: /undefined/,
  null: /null/,
  text: /only a text/,
  never: /StepTimeout/,
  zeroMessage: /before.*behind/,
  longMessage: /long long/,
  zeroResult: /u0000/,
  large: /PayloadTooLarge/,
  circular: /self/,
  bigint: /bigint/i,
  toJsonThrows: /no JSON of this/,
  getterThrows: /no value/,
  thenThrows: /no then/,
  deep: /deep|levels/,
};

async function endOf(name: string, act: Act): Promise<string> {
  const { runId } = await pawl.start(name, { act });
  try {
    return `completed ${JSON.stringify(await pawl.result(runId, { timeout: "100s" }))}`;
  } catch {
    const run = await pawl.runs.get(runId);
    return `${run.status} ${JSON.stringify(run.error)}`;
  }
}

it("whatever a step throws or returns, its run fails and says why, and others go on", async () => {
  const poisoning = Promise.all(
    poisons.flatMap(({ name }) =>
      harmful.map(async (act) => {
        const end = await endOf(name, act);
        expect.soft(end, `${name} ${act}`).toMatch(tellings[act] ?? /./);
        expect.soft(end, `${name} ${act}`).toMatch(/^failed/);
      }),
    ),
  );
  await load.during(poisoning, 4, 50);
  expect(fleet.deaths()).toBe(0);
}, 120_000);

it("a step that ends its process is tried again elsewhere, and others go on", async () => {
  const poisoning = async (): Promise<void> => {
    // Two at a time: those that die beside them lose an attempt too.
    for (const acts of [deadly.slice(0, 2), deadly.slice(2)]) {
      const ends = await Promise.all(poisons.flatMap(({ name }) => acts.map((act) => endOf(name, act))));
      expect.soft(ends, acts.join(" and ")).toEqual(ends.map(() => 'completed "survived"'));
    }
  };
  await load.during(poisoning(), 4, 50);
  expect(fleet.deaths()).toBeGreaterThanOrEqual(deadly.length);
}, 180_000);

it("at the end every invariant holds", async () => {
  await arena.quiet();
  await arena.judge();
}, 90_000);
