/**
 * Random sequences of commands against the model and the database, one call at a time: every answer and every row is compared.
 * `PAWL_SEED` plays the sequences of a failure again, `PAWL_SEQUENCES` says how many to play.
 */

import { describe, expect, it } from "vitest";
import { faults, withFault } from "./sql/broken.js";
import { sequenceDatabase } from "./sql/database.js";
import { examples } from "./sql/examples.js";
import { play, search, type Tally } from "./sql/property.js";

const seed = Number(process.env["PAWL_SEED"] ?? Date.now() % 2 ** 31);
const sequences = Number(process.env["PAWL_SEQUENCES"] ?? 300);
const longestMs = 120_000 + sequences * 300;

const database = await sequenceDatabase();

describe("the database does what the model says", () => {
  const tally: Tally = new Map();

  it(`in ${sequences} random sequences of up to 40 commands`, { timeout: longestMs + 60_000 }, async () => {
    const startedMs = Date.now();
    const { failure } = await search(database, { seed, sequences, longestMs, examples, tally });
    const answers = [...tally.values()].reduce((sum, times) => sum + times, 0);
    console.info(
      `PAWL_SEED=${seed}: ${sequences} sequences, ${answers} answers, ${Date.now() - startedMs} ms`,
    );
    expect(failure).toBeNull();
  });

  it.runIf(sequences >= 300)("the random sequences lead to every answer", () => {
    expect([...tally.keys()].toSorted()).toEqual([
      "advance",
      "beat: alive",
      "beat: lapsed",
      "cancel: already",
      "cancel: cancelled",
      "cancel: ended",
      "cancel: not_found",
      "claim: awaited",
      "claim: children",
      "claim: claimed",
      "claim: nothing",
      "claim: timed out",
      "commit: already",
      "commit: committed",
      "commit: fresh",
      "commit: handed over",
      "commit: stale",
      "lapse",
      "reap: nothing",
      "reap: reaped",
      "register",
      "release: nothing",
      "release: released",
      "repair",
      "signal: delivered",
      "signal: duplicate",
      "signal: ended",
      "signal: not_found",
      "start",
      "sweep: nothing",
      "sweep: swept",
    ]);
  });
});

describe("a function that is built wrong is found out", () => {
  for (const fault of faults) {
    it(fault.says, { timeout: longestMs + 60_000 }, async () => {
      const { failure, sequence } = await withFault(database, fault, () =>
        search(database, { seed: 1, sequences: 300, longestMs, isFirstEnough: true, examples }),
      );
      expect(failure).not.toBeNull();
      // mended, the same sequence passes: the fault was all that was wrong
      await play(database, sequence);
    });
  }

  it("by a sequence that is made short", { timeout: longestMs + 60_000 }, async () => {
    const fault = faults.find(({ of }) => of === "end_runs")!;
    const { failure, sequence } = await withFault(database, fault, () =>
      search(database, { seed: 1, sequences: 300, longestMs }),
    );
    expect(failure).toContain('run 1: {"holder":null} instead of {"holder":"a"}');
    expect(sequence.length).toBeLessThanOrEqual(5);
  });
});
