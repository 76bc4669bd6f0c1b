/**
 * Percentiles from the histogram of a minute or hour. SQL (`latency_bounds`) has the same bounds. Pure;
 * used by `postgres-reports.ts`.
 */

/** Upper bounds in milliseconds; a histogram has one more entry, for longer times. */
const latencyBounds: readonly number[] = [
  ...Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((factor) => factor * 10 ** power)).flat(),
  1e9,
];

/**
 * The time that this share of runs stayed within, interpolated inside its bucket; null: none. Times
 * beyond the last bound count as that bound.
 */
export function percentile(histogram: readonly number[], share: number): number | null {
  const total = histogram.reduce((sum, runs) => sum + runs, 0);
  if (total === 0) return null;
  const wanted = total * share;
  let before = 0;
  for (const [bucket, runs] of histogram.entries()) {
    if (runs > 0 && before + runs >= wanted) {
      const low = latencyBounds[bucket - 1] ?? 0;
      const high = latencyBounds[bucket] ?? low;
      return Math.round((low + ((high - low) * (wanted - before)) / runs) * 10) / 10;
    }
    before += runs;
  }
  return latencyBounds.at(-1)!;
}
