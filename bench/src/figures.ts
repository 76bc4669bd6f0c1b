/**
 * The figures that several benches share, so that they are named and computed the same everywhere.
 */

import type { Figure } from "./bench.js";
import type { RawLimit } from "./raw-limit.js";
import { percentile } from "./statistics.js";
import type { Usage } from "./usage.js";

export function rate(key: string, label: string, count: number, seconds: number): Figure {
  return { key, label, value: count / seconds, unit: "/s", ofLimit: true };
}

/** `part` of `whole`, in percent. */
export function share(key: string, label: string, part: number, whole: number): Figure {
  return { key, label, value: (100 * part) / whole, unit: "%" };
}

/** The percentiles of times, under `p50_ms` and so on, after the prefix of the keys. */
export function percentiles(prefix: string, label: string, timesMs: readonly number[]): Figure[] {
  return [50, 95, 99].map((percent) => ({
    key: `${prefix}p${percent}_ms`,
    label: `${label}, p${percent}`,
    value: percentile(timesMs, percent),
    unit: "ms",
  }));
}

export function limitFigure({ rowsPerSecond }: RawLimit): Figure {
  return {
    key: "limit_rows_per_s",
    label: "raw limit: rows updated, 100 per commit",
    value: rowsPerSecond,
    unit: "/s",
  };
}

/** The time of one durable commit, for comparison with sequential work. */
export function commitFigure({ commitMs }: RawLimit): Figure {
  return { key: "commit_p50_ms", label: "raw limit: one-row commit, p50", value: commitMs, unit: "ms" };
}

/** The cost of one unit of work: `phase` names the keys, `of` is "step" or "run". */
export function costs(phase: string, of: string, usage: Usage, count: number): Figure[] {
  const prefix = phase === "" ? "" : `${phase}_`;
  const label = phase === "" ? "" : `${phase}: `;
  return [
    {
      key: `${prefix}postgres_cpu_us_per_${of}`,
      label: `${label}Postgres CPU per ${of}`,
      value: usage.cpuMs === null ? null : (usage.cpuMs * 1_000) / count,
      unit: "µs",
    },
    {
      key: `${prefix}wal_bytes_per_${of}`,
      label: `${label}WAL per ${of}`,
      value: usage.walBytes / count,
      unit: "bytes",
    },
  ];
}

export function workerCpu(workerCpuMs: number, count: number): Figure {
  return {
    key: "worker_cpu_us_per_step",
    label: "worker CPU per step",
    value: (workerCpuMs * 1_000) / count,
    unit: "µs",
  };
}
