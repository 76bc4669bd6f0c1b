/**
 * Every pair of {claim, commit, park, signal, heartbeat, reap, cancel, timeout, sweep, pause} on the real functions, one in the
 * middle of the other's transaction. Whatever the order and however the first one ends: no deadlock, no lost wake-up, one outcome
 * per claim, terminal is final, every signal is shown once, one holder per key and slot, and in the end no run is stuck.
 */

import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { furtherCases, pairs } from "./layouts.js";
import { meetings } from "./meeting.js";
import { operations } from "./operations.js";

const { connections, meet } = await meetings(await testDatabase());

const cases = [...pairs()];
const further = [...furtherCases()];

describe("the laws hold for", () => {
  let waits = 0;

  for (const one of [...cases, ...further]) {
    it(one.name, async () => {
      if (await meet(one)) waits++;
      expect(connections.errors).not.toContain("40P01");
    });
  }

  it("all pairs of operations, without a deadlock", async () => {
    const size = Object.keys(operations).length;
    const met = new Set(cases.map(({ first, second }) => [first.name, second.name].toSorted().join(" and ")));
    expect(met.size).toBe((size * (size + 1)) / 2);
    expect(await connections.deadlocks()).toBe(0);
    console.info(
      `${met.size} pairs in ${cases.length} cases, and ${further.length} further ones; in ${waits} the second one waited for the first`,
    );
  });
});
