/**
 * The output of the benchmark: a table of medians with their spread and their share of the raw
 * limit, and the same figures as one JSON object for programs.
 */

import type { Figure } from "./bench.js";
import { median } from "./statistics.js";

interface Summary extends Omit<Figure, "value"> {
  /** The median of the repeats. */
  readonly value: number | null;
  readonly least: number | null;
  readonly most: number | null;
}

/** One summary per figure, over all repeats of the bench. */
export function summarize(repeats: readonly (readonly Figure[])[]): Summary[] {
  return (repeats[0] ?? []).map((figure, index) => {
    const values = repeats.map((figures) => figures[index]?.value ?? null).filter((value) => value !== null);
    if (values.length === 0) return { ...figure, value: null, least: null, most: null };
    return { ...figure, value: median(values), least: Math.min(...values), most: Math.max(...values) };
  });
}

export function toTable(summaries: readonly Summary[], repeats: number): string {
  const limit = summaries.find(({ key }) => key === "limit_rows_per_s")?.value ?? null;
  const lines = summaries.map((summary) => {
    const { label, value, unit, least, most } = summary;
    const cells = [
      label.padEnd(42),
      value === null ? "not measured" : `${show(value).padStart(12)} ${unit.padEnd(6)}`,
    ];
    if (repeats > 1 && least !== null && most !== null)
      cells.push(`${show(least)} … ${show(most)}`.padEnd(22));
    if (summary.ofLimit === true && value !== null && limit !== null) {
      cells.push(`${((100 * value) / limit).toFixed(0).padStart(4)} % of the limit`);
    }
    return `  ${cells.join("  ").trimEnd()}`;
  });
  return lines.join("\n");
}

/** The figures in their order under their keys, after the name of the bench. */
export function toJson(bench: string, summaries: readonly Summary[]): string {
  const figures = summaries.map(({ key, value }) => [key, value === null ? null : rounded(value)]);
  return JSON.stringify({ bench, ...Object.fromEntries(figures) });
}

/** Enough digits to compare, not more than the measurement carries. */
function rounded(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toFixed(value >= 10 ? 1 : 2));
}

function show(value: number): string {
  return rounded(value).toLocaleString("en-US");
}
