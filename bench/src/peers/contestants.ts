/**
 * The contestants, their variants, and who is left out and why. Each contestant is a program in
 * `bench/peers/src`. Its head says how it is tuned, and by which advice of its documentation.
 */

import type { Measurement } from "./protocol.js";

/** One way in which a contestant does a measurement. */
export interface Way {
  /** Its name in the table; "" if there is only one. */
  readonly variant: string;
  /** Measures only a part: shown, but not used for the ratio. */
  readonly isPart?: boolean;
  /** The share of the work for slow contestants, so that a run ends; rates stay comparable. */
  readonly share?: number;
}

export interface Contestant {
  readonly name: string;
  /** Its storage. Only those on Postgres count for the ratios of rates. */
  readonly storage: "postgres" | "redis" | "own server";
  /** The measurements it supports; a string says why one is missing. */
  readonly ways: Readonly<Record<Measurement, readonly Way[] | string>>;
}

const one: readonly Way[] = [{ variant: "" }];

const noWorkflows = "a job queue: it records no steps";
const noBatches = "its code gets one job at a time";
const noSignals = "a job queue: a job cannot wait for a signal";

/** Of a job queue. */
const queue = {
  workflow_steps: noWorkflows,
  jobs_drained: one,
  batches_drained: noBatches,
  enqueued: one,
  result_latency: one,
  timer_lateness: one,
  signal_wakeup: noSignals,
};

/**
 * In the order in which a short run must have them: if its time does not suffice, the slow ones are
 * left.
 */
export const contestants: readonly Contestant[] = [
  {
    name: "pawl",
    storage: "postgres",
    ways: {
      workflow_steps: one,
      jobs_drained: one,
      batches_drained: one,
      enqueued: one,
      result_latency: [{ variant: "job" }, { variant: "workflow" }],
      timer_lateness: one,
      signal_wakeup: one,
    },
  },
  {
    name: "graphile-worker",
    storage: "postgres",
    ways: {
      ...queue,
      jobs_drained: [{ variant: "batched" }, { variant: "unbatched", share: 0.05 }],
      result_latency: [{ variant: "completion event" }],
    },
  },
  {
    name: "pg-boss",
    storage: "postgres",
    ways: {
      ...queue,
      jobs_drained: [{ variant: "batches of 1,000" }, { variant: "singly", share: 0.025 }],
      batches_drained: one,
      result_latency: [{ variant: "pick-up only", isPart: true }],
    },
  },
  { name: "bullmq", storage: "redis", ways: queue },
  {
    name: "restate",
    storage: "own server",
    ways: {
      workflow_steps: one,
      jobs_drained: "no backlog can be made: what is sent begins at once",
      batches_drained: noBatches,
      enqueued: "no enqueueing apart from executing: what is sent begins at once",
      result_latency: one,
      timer_lateness: one,
      signal_wakeup: one,
    },
  },
  {
    name: "dbos",
    storage: "postgres",
    ways: {
      workflow_steps: [
        { variant: "started", share: 0.3 },
        { variant: "queued", share: 0.3 },
      ],
      jobs_drained: [{ variant: "", share: 0.05 }],
      batches_drained: noBatches,
      enqueued: [{ variant: "singly", share: 0.1 }],
      result_latency: one,
      timer_lateness: one,
      signal_wakeup: one,
    },
  },
  {
    name: "bullmq-postgres",
    storage: "postgres",
    ways: { ...queue, jobs_drained: [{ variant: "", share: 0.05 }] },
  },
  {
    name: "openworkflow",
    storage: "postgres",
    ways: {
      workflow_steps: [{ variant: "", share: 0.3 }],
      jobs_drained: [{ variant: "", share: 0.025 }],
      batches_drained: noBatches,
      enqueued: [{ variant: "singly", share: 0.1 }],
      result_latency: [{ variant: "", share: 0.06 }],
      timer_lateness: one,
      signal_wakeup: one,
    },
  },
];

/** Asked for, and not there. */
export const leftOut: readonly { readonly name: string; readonly reason: string }[] = [
  {
    name: "absurd",
    reason: "absurd-sdk 0.5.0 on npm has no SQL: its schema comes with absurdctl, which is not on npm",
  },
];
