/**
 * The protocol between the orchestrator and the program of a contestant: one order, one answer. The
 * programs import only the types, so this file may contain only types and plain lists.
 */

export const measurements = [
  "workflow_steps",
  "jobs_drained",
  "batches_drained",
  "enqueued",
  "result_latency",
  "timer_lateness",
  "signal_wakeup",
] as const;

export type Measurement = (typeof measurements)[number];

export interface Order {
  readonly measurement: Measurement;
  /** Which of several ways the peer offers; "" if there is one. */
  readonly variant: string;
  /** An empty database; Pawl's is migrated. */
  readonly databaseUrl: string;
  /** The server that the contestant needs beside Postgres, or "". */
  readonly serviceUrl: string;
  /** Workflows, jobs, rounds, timers or signals. */
  readonly count: number;
  /** The same, not measured, before. */
  readonly warmUp: number;
  /** Workflows or jobs at a time. */
  readonly concurrency: number;
  /** Timers are due within this time. */
  readonly spreadMs: number;
}

export type Answer =
  /** So much was done and verified, in this time. */
  | { readonly kind: "rate"; readonly done: number; readonly seconds: number }
  | { readonly kind: "times"; readonly timesMs: readonly number[] }
  | { readonly kind: "failed"; readonly message: string };
