/**
 * Computes the results from the repetitions: medians with their spread, and for each measurement
 * the ratio of Pawl to the best peer, above 1 where Pawl is ahead. Rates are compared with peers on
 * Postgres, latencies with all. Variants that measure only a part do not count.
 */

import { median } from "../statistics.js";
import { plans } from "./measurements.js";
import type { Measurement } from "./protocol.js";
import type { Entry } from "./schedule.js";

/** The result of one repetition: a rate per second, or a median in milliseconds. */
export interface Figure {
  readonly value: number;
  /** Of times alone. */
  readonly p99: number | null;
}

export interface Summary {
  readonly measurement: Measurement;
  readonly contestant: string;
  readonly variant: string;
  readonly isOnPostgres: boolean;
  readonly isPart: boolean;
  /** The median of the repetitions that succeeded; null if none did. */
  readonly value: number | null;
  readonly least: number | null;
  readonly most: number | null;
  readonly p99: number | null;
  readonly repetitions: number;
  /** Why a repetition failed. */
  readonly errors: readonly string[];
}

export interface Ratio {
  /** Above 1: Pawl is ahead. */
  readonly ratio: number | null;
  readonly best: Summary | null;
}

export function summarize(
  { contestant, measurement, way }: Entry,
  figures: readonly Figure[],
  errors: readonly string[],
): Summary {
  const values = figures.map(({ value }) => value);
  const p99s = figures.map(({ p99 }) => p99).filter((p99) => p99 !== null);
  return {
    measurement,
    contestant: contestant.name,
    variant: way.variant,
    isOnPostgres: contestant.storage === "postgres",
    isPart: way.isPart === true,
    value: values.length === 0 ? null : median(values),
    least: values.length === 0 ? null : Math.min(...values),
    most: values.length === 0 ? null : Math.max(...values),
    p99: p99s.length === 0 ? null : median(p99s),
    repetitions: figures.length,
    errors,
  };
}

/** Pawl against the best peer that is a match. */
export function ratioOf(summaries: readonly Summary[], measurement: Measurement): Ratio {
  const { better } = plans[measurement];
  const matches = summaries.filter(
    (summary) =>
      summary.measurement === measurement &&
      summary.contestant !== "pawl" &&
      !summary.isPart &&
      (better === "less" || summary.isOnPostgres),
  );
  const best = bestOf(matches);
  return { ratio: best === null ? null : pawlAgainst(summaries, best), best };
}

/** Pawl against this peer; null if one of them has no figure. */
export function pawlAgainst(summaries: readonly Summary[], peer: Summary): number | null {
  const ours = bestOf(
    summaries.filter(
      ({ measurement, contestant }) => measurement === peer.measurement && contestant === "pawl",
    ),
  );
  if (ours?.value == null || peer.value === null || peer.contestant === "pawl") return null;
  return plans[peer.measurement].better === "more" ? ours.value / peer.value : peer.value / ours.value;
}

/** Of summaries of one measurement. */
function bestOf(summaries: readonly Summary[]): Summary | null {
  const measured = summaries.filter(({ value }) => value !== null);
  const sign = measured[0] !== undefined && plans[measured[0].measurement].better === "more" ? -1 : 1;
  return measured.toSorted((one, other) => sign * (one.value! - other.value!))[0] ?? null;
}
