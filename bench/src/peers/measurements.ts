/**
 * The seven measurements: unit, amount of work, and which direction is better. `bench/README.md`
 * describes each; the programs of the contestants perform them.
 */

import type { Measurement } from "./protocol.js";

interface Amount {
  readonly count: number;
  readonly warmUp: number;
}

export interface MeasurementPlan {
  readonly title: string;
  readonly unit: "/s" | "ms";
  /**
   * Latencies: less is better, and the ratio is against the best of all; rates: against the best on
   * Postgres.
   */
  readonly better: "more" | "less";
  readonly usual: Amount;
  readonly quick: Amount;
  readonly concurrency: number;
  readonly spreadMs: { readonly usual: number; readonly quick: number };
  /** After this the contestant is killed, and the measurement is an error. */
  readonly longestMs: { readonly usual: number; readonly quick: number };
}

const noSpread = { usual: 0, quick: 0 };
const rates = { unit: "/s", better: "more", spreadMs: noSpread } as const;
const latencies = { unit: "ms", better: "less", spreadMs: noSpread } as const;
const longestMs = { usual: 120_000, quick: 15_000 };

export const plans: Record<Measurement, MeasurementPlan> = {
  workflow_steps: {
    ...rates,
    title: "steps of 10-step workflows, 100 at a time",
    usual: { count: 1_000, warmUp: 200 },
    quick: { count: 500, warmUp: 50 },
    concurrency: 100,
    longestMs,
  },
  jobs_drained: {
    ...rates,
    title: "no-op jobs drained by one process",
    usual: { count: 50_000, warmUp: 2_000 },
    quick: { count: 20_000, warmUp: 1_000 },
    concurrency: 100,
    longestMs,
  },
  batches_drained: {
    ...rates,
    title: "batch jobs, 1,000 a batch, drained by one process",
    usual: { count: 50_000, warmUp: 2_000 },
    quick: { count: 20_000, warmUp: 1_000 },
    concurrency: 2,
    longestMs,
  },
  enqueued: {
    ...rates,
    title: "jobs enqueued, 1,000 a call",
    usual: { count: 50_000, warmUp: 2_000 },
    quick: { count: 20_000, warmUp: 2_000 },
    concurrency: 100,
    longestMs,
  },
  result_latency: {
    ...latencies,
    title: "one step, start to result, p50",
    usual: { count: 500, warmUp: 100 },
    quick: { count: 60, warmUp: 20 },
    concurrency: 10,
    longestMs,
  },
  timer_lateness: {
    ...latencies,
    title: "lateness of timers, p50",
    usual: { count: 200, warmUp: 5 },
    quick: { count: 40, warmUp: 3 },
    concurrency: 100,
    spreadMs: { usual: 5_000, quick: 1_000 },
    longestMs,
  },
  signal_wakeup: {
    ...latencies,
    title: "signal to woken workflow, p50",
    usual: { count: 200, warmUp: 20 },
    quick: { count: 25, warmUp: 5 },
    concurrency: 10,
    longestMs,
  },
};
