/**
 * From the repetitions to what is said about them: medians with their spread, and for each measurement Pawl against the best
 * peer, above 1 where Pawl is ahead. Rates are compared with peers on Postgres, latencies with all; a way that measures
 * only a part of what is asked is no match.
 */

import { median } from "../statistics.js";
import { plans } from "./measurements.js";
import type { Measurement } from "./protocol.js";
import type { Entry } from "./schedule.js";

/** What one repetition gave: a rate per second, or the median of times in milliseconds. */
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

export function ratioOf(summaries: readonly Summary[], measurement: Measurement): Ratio {
  const { better } = plans[measurement];
  const own = summaries.filter((summary) => summary.measurement === measurement && summary.value !== null);
  const bestOf = (some: readonly Summary[]): Summary | null =>
    some.toSorted((one, other) =>
      better === "more" ? other.value! - one.value! : one.value! - other.value!,
    )[0] ?? null;
  const ours = bestOf(own.filter(({ contestant }) => contestant === "pawl"));
  const best = bestOf(
    own.filter(
      ({ contestant, isOnPostgres, isPart }) =>
        contestant !== "pawl" && !isPart && (better === "less" || isOnPostgres),
    ),
  );
  if (ours === null || best === null) return { ratio: null, best };
  return { ratio: better === "more" ? ours.value! / best.value! : best.value! / ours.value!, best };
}
