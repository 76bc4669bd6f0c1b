/**
 * The race that decides whether wake-ups are lost: runs wait for a signal at the very instant at which it is sent. Answers how many
 * of them were left waiting beside their signal; every other one is claimed, sees its signal once, and ends.
 */

import { expect } from "vitest";
import { done, park } from "../support/store.js";
import { lostWakeUps } from "./laws.js";
import {
  aligned,
  chunks,
  claimUpTo,
  commitEach,
  executing,
  idsOf,
  type Race,
  shuffled,
  spread,
} from "./race.js";
import { matchedBy } from "./scene.js";

/** One round: `count` runs park and are signalled, in batches of these sizes. */
export async function parkAndSignal(
  race: Race,
  count: number,
  { parks, signals }: { parks: number; signals: number },
): Promise<number> {
  const { database, one, other } = race;
  const runs = await executing(race, count);
  const ids = idsOf(runs);
  const [, delivered] = await aligned(
    () => spread(one, chunks(shuffled(runs), parks), (on, batch) => commitEach(on, batch, () => park("go"))),
    () =>
      spread(other, chunks(shuffled(ids), signals), async (on, batch) => {
        const sent = batch.map((runId) => ({ runId, name: "go", payload: "{}", dedupKey: null }));
        return (await on.store.signal(sent, { patient: true })).verdicts;
      }),
  );
  expect(delivered.flat()).toEqual(Array(count).fill("delivered"));
  const lost = await lostWakeUps(database, "default");
  if (lost.length > 0) {
    await database.sql("update runs set status = 'runnable', eligible_at = now() where id = any ($1)", [
      lost,
    ]);
  }
  const woken = await claimUpTo(one[0]!, count);
  expect(idsOf(woken).toSorted()).toEqual(ids.toSorted());
  for (const run of woken) {
    expect(matchedBy(run)).toEqual([1]);
    expect(run.timedOut).toBe(false);
  }
  const ended = await commitEach(one[0]!, woken, () => done());
  expect(new Set(ended.values())).toEqual(new Set(["committed"]));
  return lost.length;
}
