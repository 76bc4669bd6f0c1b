/**
 * The output of `bench:peers`: a table of medians with their spread for each measurement, the
 * ratios, and the omissions.
 */

import { plans } from "./measurements.js";
import type { Measurement } from "./protocol.js";
import { pawlAgainst, ratioOf, type Summary } from "./ratios.js";

export interface Omission {
  readonly name: string;
  readonly reason: string;
}

export const labelOf = ({ contestant, variant }: Summary): string =>
  variant === "" ? contestant : `${contestant}, ${variant}`;

/** Best first. */
export function sorted(summaries: readonly Summary[], measurement: Measurement): Summary[] {
  const sign = plans[measurement].better === "more" ? -1 : 1;
  const rank = ({ value }: Summary): number => (value === null ? Number.POSITIVE_INFINITY : sign * value);
  return summaries
    .filter((summary) => summary.measurement === measurement)
    .toSorted((one, other) => rank(one) - rank(other));
}

export function toTable(summaries: readonly Summary[], measurement: Measurement): string {
  const { title } = plans[measurement];
  const rows = sorted(summaries, measurement).map((summary) => `  ${row(summaries, summary)}`);
  return [`${measurement}: ${title}`, ...rows, `  ${ratioLine(summaries, measurement)}`].join("\n");
}

function row(all: readonly Summary[], summary: Summary): string {
  const { measurement, value, least, most, p99, errors } = summary;
  const { unit } = plans[measurement];
  const label = labelOf(summary).padEnd(34);
  if (value === null) return `${label} failed: ${firstLine(errors[0])}`;
  const cells = [label, `${show(value).padStart(9)} ${unit.padEnd(3)}`];
  cells.push(`${show(least!)} … ${show(most!)}`.padEnd(20));
  const ratio = pawlAgainst(all, summary);
  cells.push((ratio === null ? "" : `pawl ${ratio.toFixed(2)} ×`).padEnd(13));
  if (p99 !== null) cells.push(`p99 ${show(p99)} ms`);
  if (!summary.isOnPostgres) cells.push("not on Postgres");
  if (errors.length > 0) cells.push(`failed ${errors.length} times: ${firstLine(errors[0])}`);
  return cells.join("  ").trimEnd();
}

function ratioLine(summaries: readonly Summary[], measurement: Measurement): string {
  const { ratio, best } = ratioOf(summaries, measurement);
  if (ratio === null || best === null) return "ratio: nothing to compare";
  const among = plans[measurement].better === "more" ? "the best on Postgres" : "the best of all";
  return `ratio: ${ratio.toFixed(2)}, against ${labelOf(best)}, ${among}`;
}

const firstLine = (text: string | undefined): string => (text ?? "").split("\n")[0]!.slice(0, 160);

export function toOmissions(omissions: readonly Omission[]): string {
  return ["left out:", ...omissions.map(({ name, reason }) => `  ${name}: ${reason}`)].join("\n");
}

/** The last line of `--json`. */
export function toJson(
  summaries: readonly Summary[],
  measurements: readonly Measurement[],
  limitRowsPerSecond: number,
): string {
  const ratios = measurements.map((measurement) => {
    const { ratio } = ratioOf(summaries, measurement);
    return [measurement, ratio === null ? null : Number(ratio.toFixed(3))];
  });
  const best = measurements.map((measurement) => {
    const peer = ratioOf(summaries, measurement).best;
    return [
      measurement,
      peer === null ? null : { name: labelOf(peer), value: peer.value, postgres: peer.isOnPostgres },
    ];
  });
  return JSON.stringify({
    bench: "peers",
    ratios: Object.fromEntries(ratios),
    best: Object.fromEntries(best),
    limit_rows_per_s: Math.round(limitRowsPerSecond),
  });
}

/** Enough digits to compare, not more than the measurement carries. */
export function show(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString("en-US");
}
