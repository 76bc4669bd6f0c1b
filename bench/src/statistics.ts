/** The two numbers that benches reduce many to: medians of repeats and percentiles of latencies. */

/** The smallest value that at least this percentage of the values does not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const rank = Math.ceil((percent / 100) * sorted.length);
  const value = sorted[Math.max(rank, 1) - 1];
  if (value === undefined) throw new RangeError("no values, no percentile");
  return value;
}

/** The middle value, or the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.ceil(sorted.length / 2) - 1];
  if (upper === undefined || lower === undefined) throw new RangeError("no values, no median");
  return (lower + upper) / 2;
}
