/**
 * The order of the work: measurement by measurement, within it one contestant after the other, each
 * repetition beginning with another one. So a temporary disturbance of the machine affects all of
 * them, and none is always first.
 */

import type { Contestant, Way } from "./contestants.js";
import type { Measurement } from "./protocol.js";

/** One contestant's one way of doing one measurement. */
export interface Entry {
  readonly contestant: Contestant;
  readonly measurement: Measurement;
  readonly way: Way;
}

/** The entries of each repetition. */
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

/**
 * The entries of one repetition: those of each measurement turned by one more than in the
 * repetition before.
 */
export function inTurn(entries: readonly Entry[], repetition: number): readonly Entry[] {
  return measurementsOf(entries).flatMap((measurement) => {
    const own = entries.filter((entry) => entry.measurement === measurement);
    const first = repetition % own.length;
    return [...own.slice(first), ...own.slice(0, first)];
  });
}

/**
 * The latest time, from the beginning, at which this entry may begin. In the first repetition each
 * measurement has an equal part of the budget, plus the rest of those before it. So a slow machine
 * still reaches the last ones.
 */
export function latestBeginMs(
  entries: readonly Entry[],
  { measurement }: Entry,
  repetition: number,
  budgetMs: number,
): number {
  if (repetition > 0) return budgetMs;
  const measurements = measurementsOf(entries);
  return (budgetMs * (measurements.indexOf(measurement) + 1)) / measurements.length;
}

const measurementsOf = (entries: readonly Entry[]): Measurement[] => [
  ...new Set(entries.map(({ measurement }) => measurement)),
];
