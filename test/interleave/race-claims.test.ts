/**
 * Race-aligned pairs around the claim: 2,000 each of claim and claim, claim and reap (with the zombie committing as well), the
 * ends of the last two children of one parent, and the end of a key's holder while its siblings are claimed.
 */

import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { done, register, spawn, start } from "../support/store.js";
import {
  aligned,
  chunks,
  claimUpTo,
  commitEach,
  executing,
  idsOf,
  merged,
  raceOn,
  shuffled,
  spread,
} from "./race.js";
import type { Held } from "./scene.js";

const race = await raceOn(await testDatabase());
const { database, connections, one, other } = race;
const { sql, store } = database;
const minute = 60_000;

afterAll(async () => {
  expect(await connections.deadlocks()).toBe(0);
});

const claims = async (side: typeof one, sizes: number[]): Promise<Held[]> =>
  (await spread(side, sizes, claimUpTo)).flat();

/** Each of these runs was claimed once, and is held by that claim. */
async function expectHeld(claimed: readonly Held[], ids: readonly string[]): Promise<void> {
  expect(idsOf(claimed).toSorted()).toEqual(ids.toSorted());
  const rows = await sql<{ id: string; claim_id: string }>(
    "select id, claim_id from runs where id = any ($1) and status = 'executing' and locked_by = 'live'",
    [ids],
  );
  const holders = new Map(rows.map(({ id, claim_id: claimId }) => [id, claimId]));
  expect(holders).toEqual(new Map(claimed.map(({ runId, claimId }) => [runId, claimId])));
}

it("2,000 runs that several workers claim at once are claimed once each", { timeout: minute }, async () => {
  for (let round = 0; round < 10; round++) {
    const ids = await start(database, ...Array.from({ length: 200 }, () => ({})));
    const sizes = [30, 20, 50, 30, 20, 50];
    const claimed = (
      await aligned(
        () => claims(one, sizes),
        () => claims(other, sizes),
      )
    ).flat();
    claimed.push(...(await claimUpTo(one[0]!, 200)));
    await expectHeld(claimed, ids);
    await commitEach(one[0]!, claimed, () => done());
  }
  console.info("claim and claim: 2000 pairs");
});

it(
  "2,000 runs of dead workers that are reaped, claimed and committed by the zombie at once have one owner",
  { timeout: minute },
  async () => {
    let zombies = 0;
    for (let round = 0; round < 20; round++) {
      const workerId = `dead-${round}`;
      await register(database, workerId);
      const runs = await executing(race, 100, {}, workerId);
      await sql("update workers set seen_at = seen_at - interval '2 hours' where id = $1", [workerId]);
      const last = other.at(-1)!;
      const [claimed, [reaped, committed]] = await aligned(
        () => claims(one, Array(18).fill(20) as number[]),
        () =>
          Promise.all([
            spread(other.slice(0, -1), [15, 15, 40, 40, 40, 40], (on, limit) => on.store.reap(limit)),
            spread([last], chunks(shuffled(runs).slice(0, 50), 5), (on, batch) =>
              commitEach(on, batch, () => done()),
            ),
          ]),
      );
      const rest = await store.reap(1_000);
      claimed.push(...(await claimUpTo(one[0]!, 100)));
      const ended = [...merged(committed)].filter(([, verdict]) => verdict === "committed").map(([id]) => id);
      expect(reaped.reduce((sum, count) => sum + count, rest)).toBe(100 - ended.length);
      expect(claimed.filter(({ attempt, crashes }) => attempt !== 1 || crashes !== 1)).toEqual([]);
      await expectHeld(
        claimed,
        idsOf(runs).filter((id) => !ended.includes(id)),
      );
      expect(await sql("select from workers where id = $1", [workerId])).toEqual([]);
      await commitEach(one[0]!, claimed, () => done());
      zombies += ended.length;
    }
    console.info(`claim and reap: 2000 pairs, ${zombies} runs ended by the zombie before it was reaped`);
  },
);

it("2,000 parents whose last two children end at once go on once", { timeout: minute }, async () => {
  for (let round = 0; round < 40; round++) {
    const parents = await executing(race, 50);
    await commitEach(one[0]!, parents, () => spawn({}, {}));
    const children = await claimUpTo(one[0]!, 100);
    const halves = [0, 1].map((half) => shuffled(children.filter((_, index) => index % 2 === half)));
    const ending = (side: typeof one, half: Held[]) =>
      spread(side, chunks(half, 8), (on, batch) => commitEach(on, batch, () => done()));
    const [, [, early]] = await aligned(
      () => ending(one, halves[0]!),
      () => Promise.all([ending(other.slice(1), halves[1]!), claims(other.slice(0, 1), [20, 20, 20])]),
    );
    const gathered = [...early, ...(await claimUpTo(one[0]!, 100))];
    await expectHeld(gathered, idsOf(parents));
    expect(new Set(gathered.map((run) => run.children))).toEqual(new Set([2]));
    await commitEach(one[0]!, gathered, () => done());
  }
  console.info("child end and child end: 2000 pairs");
});

/** Keys that nobody holds although their first run is blocked. */
const stuckKeys = async (): Promise<number> => {
  const [row] = await sql<{ count: number }>(
    `select count(*)::int as count from (
       select distinct on (r.partition_key) r.partition_key as key, r.hold from runs r
       where r.partition_key is not null and r.status in ('runnable', 'awaiting_signal') and r.hold & 6 = 0 and r.eligible_at <= now()
       order by r.partition_key, r.priority, r.eligible_at, r.id) first
     where first.hold = 1 and first.key not in (
       select h.partition_key from runs h where h.partition_key is not null and h.locked_by is not null)`,
  );
  return row!.count;
};

it(
  "2,000 keys that are freed while their siblings are claimed and signalled let the next in, at the latest by the repair",
  { timeout: minute },
  async () => {
    const count = { repaired: 0, handed: 0 };
    for (let round = 0; round < 40; round++) {
      const keys = Array.from({ length: 50 }, (_, index) => ({ partitionKey: `key-${round}-${index}` }));
      await start(database, ...keys);
      const heads = await claimUpTo(one[0]!, 50);
      const siblings = await start(database, ...keys, ...keys);
      const handed: Held[] = [];
      const onHanded = round % 2 === 0 ? undefined : (run: Held): number => handed.push(run);
      const [, [claimed]] = await aligned(
        () =>
          spread(one, chunks(shuffled(heads), 10), (on, batch) =>
            commitEach(on, batch, () => done(), onHanded),
          ),
        () =>
          Promise.all([
            claims(other.slice(1), [60, 60, 60]),
            spread(other.slice(0, 1), chunks(shuffled(siblings.slice(0, 50)), 10), (on, batch) =>
              on.store.signal(
                batch.map((runId) => ({ runId, name: "go", payload: "{}", dedupKey: null })),
                { patient: true },
              ),
            ),
          ]),
      );
      count.repaired += await stuckKeys();
      count.handed += handed.length;
      await store.repairKeys(null, 1_000);
      expect(await stuckKeys()).toBe(0);
      const order: string[] = [];
      let held = [...claimed, ...handed, ...(await claimUpTo(one[0]!, 200))];
      for (; held.length > 0; held = await claimUpTo(one[0]!, 200)) {
        expect(new Set(held.map((run) => run.partitionKey)).size, "one holder per key").toBe(held.length);
        order.push(...idsOf(held));
        await commitEach(one[0]!, held, () => done());
      }
      expect(order.toSorted()).toEqual(siblings.toSorted());
      for (const [index, second] of siblings.slice(50).entries()) {
        expect(order.indexOf(siblings[index]!)).toBeLessThan(order.indexOf(second));
      }
    }
    console.info(
      `key free and claim: 2000 pairs, ${count.repaired} keys needed the repair, ${count.handed} were handed over`,
    );
  },
);
