/**
 * The order of the work: measurement by measurement, within it one contestant after the other, each repetition beginning
 * with another one. What disturbs the machine for a while so falls on all of them, and nobody is always first.
 */

import type { Contestant, Way } from "./contestants.js";
import type { Measurement } from "./protocol.js";

/** One contestant's one way of doing one measurement. */
export interface Entry {
  readonly contestant: Contestant;
  readonly measurement: Measurement;
  readonly way: Way;
}

/** What is to be measured in each repetition. */
export function entriesOf(
  contestants: readonly Contestant[],
  measurements: readonly Measurement[],
): readonly Entry[] {
  return measurements.flatMap((measurement) =>
    contestants.flatMap((contestant) => {
      const ways = contestant.ways[measurement];
      return typeof ways === "string" ? [] : ways.map((way) => ({ contestant, measurement, way }));
    }),
  );
}

/** The entries of one repetition: those of each measurement turned by one more than in the repetition before. */
export function inTurn(entries: readonly Entry[], repetition: number): readonly Entry[] {
  const measurements = [...new Set(entries.map(({ measurement }) => measurement))];
  return measurements.flatMap((measurement) => {
    const own = entries.filter((entry) => entry.measurement === measurement);
    const first = repetition % own.length;
    return [...own.slice(first), ...own.slice(0, first)];
  });
}
