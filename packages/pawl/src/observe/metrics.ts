/**
 * The metrics of one process, counted from its events (`events.ts`). They never query the database.
 * Owned by a worker or a server.
 */

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Events } from "./events.js";
import { Counter, expose, Gauge, Histogram, type Metric, type Reading } from "./exposition.js";

const stepSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const runSeconds = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400, 604_800];
const callSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const batchSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const calledSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
const lagResolutionMs = 20;

export class Metrics {
  readonly #all: readonly Metric[];
  readonly #offs: readonly (() => void)[];
  readonly #lag: IntervalHistogram = monitorEventLoopDelay({ resolution: lagResolutionMs });

  /** `inFlight` reads how many runs execute now, per definition. */
  constructor(events: Pick<Events, "on">, inFlight: () => Iterable<Reading> = () => []) {
    const started = new Counter({
      name: "workflow_runs_started_total",
      help: "Runs started by clients of this process, and children started by its workers.",
      labels: ["workflow"],
    });
    const completed = new Counter({
      name: "workflow_runs_completed_total",
      help: "Runs that ended in this process or were cancelled by it.",
      labels: ["workflow", "status"],
    });
    const executed = new Gauge(
      {
        name: "workflow_runs_in_flight",
        help: "Runs that this process executes now.",
        labels: ["workflow"],
      },
      inFlight,
    );
    const runDuration = new Histogram(
      {
        name: "workflow_run_duration_seconds",
        help: "Time from the start of a run to its end, including waits.",
        labels: ["workflow"],
      },
      runSeconds,
    );
    const stepDuration = new Histogram(
      {
        name: "workflow_step_duration_seconds",
        help: "Duration of the code of a step.",
        labels: ["workflow", "step"],
      },
      stepSeconds,
    );
    const retries = new Counter({
      name: "workflow_step_retries_total",
      help: "Attempts that failed and will be retried.",
      labels: ["workflow", "step"],
    });
    const failures = new Counter({
      name: "pawl_step_failures_total",
      help: "Steps that failed and will not be retried.",
      labels: ["workflow", "step"],
    });
    const signals = new Counter({
      name: "workflow_signals_total",
      help: "Signals delivered by clients of this process.",
      labels: ["workflow", "event"],
    });
    const swept = new Counter({
      name: "workflow_retention_swept_total",
      help: "Runs deleted after their retention.",
    });
    const claims = new Counter({
      name: "pawl_claims_total",
      help: "Polls of a queue that found runs.",
      labels: ["queue"],
    });
    const claimed = new Counter({
      name: "pawl_claimed_runs_total",
      help: "Runs claimed by polls of a queue.",
      labels: ["queue"],
    });
    const empty = new Counter({
      name: "pawl_empty_polls_total",
      help: "Polls of a queue that found nothing.",
      labels: ["queue"],
    });
    const claimDuration = new Histogram(
      { name: "pawl_claim_duration_seconds", help: "Duration of a poll of a queue." },
      callSeconds,
    );
    const batch = new Histogram(
      {
        name: "pawl_flush_batch_size",
        help: "Outcomes or journal entries per batch.",
        labels: ["what"],
      },
      batchSizes,
    );
    const flushDuration = new Histogram(
      { name: "pawl_flush_duration_seconds", help: "Duration of the write of a batch.", labels: ["what"] },
      callSeconds,
    );
    const called = new Histogram(
      { name: "pawl_batch_size", help: "Runs per call of a batch job.", labels: ["workflow"] },
      calledSizes,
    );
    const stale = new Counter({
      name: "pawl_stale_commits_total",
      help: "Outcomes dropped because the worker had lost its claim.",
      labels: ["workflow"],
    });
    const scheduled = new Counter({
      name: "pawl_schedule_fired_total",
      help: "Runs that this process started for ticks of schedules.",
      labels: ["schedule"],
    });
    const scheduleSkipped = new Counter({
      name: "pawl_schedule_skipped_total",
      help: "Ticks that started no run, because the last run of the schedule was not terminal.",
      labels: ["schedule"],
    });
    const scheduleFailed = new Counter({
      name: "pawl_schedule_failures_total",
      help: "Ticks whose run the database refused to start.",
      labels: ["schedule"],
    });
    const scheduleLateness = new Histogram(
      { name: "pawl_schedule_lateness_seconds", help: "How late after its tick a schedule fired." },
      stepSeconds,
    );
    const bulk = new Counter({
      name: "pawl_bulk_runs_total",
      help: "Runs that bulk operations have acted on in this process: done, skipped or failed.",
      labels: ["action", "outcome"],
    });
    const reaped = new Counter({
      name: "pawl_reaped_runs_total",
      help: "Runs reclaimed from dead workers.",
    });
    const throttled = new Counter({
      name: "pawl_throttled_total",
      help: "Times that a rate limit postponed a run.",
      labels: ["queue"],
    });
    const uniqueLost = new Counter({
      name: "pawl_unique_lost_total",
      help: "Runs that lost their unique key to another run.",
      labels: ["workflow"],
    });
    const leases = new Counter({
      name: "pawl_leases_lost_total",
      help: "Times that a worker lost its lease and aborted its steps.",
    });
    const lag = new Gauge(
      {
        name: "pawl_event_loop_lag_seconds",
        help: "Delay of timers of this process since the last scrape.",
        labels: ["quantile"],
      },
      () => this.#readLag(),
    );
    this.#all = [
      started,
      completed,
      executed,
      runDuration,
      stepDuration,
      retries,
      failures,
      signals,
      swept,
      claims,
      claimed,
      empty,
      claimDuration,
      batch,
      flushDuration,
      called,
      stale,
      scheduled,
      scheduleSkipped,
      scheduleFailed,
      scheduleLateness,
      bulk,
      reaped,
      throttled,
      uniqueLost,
      leases,
      lag,
    ];
    this.#offs = [
      events.on("run.started", ({ name }) => started.add(1, name)),
      events.on("run.completed", ({ name, status, durationMs }) => {
        completed.add(1, name, status);
        if (durationMs !== null) runDuration.observe(durationMs / 1_000, name);
      }),
      events.on("step.completed", ({ name, step, durationMs }) => {
        if (durationMs !== null) stepDuration.observe(durationMs / 1_000, name, step);
      }),
      events.on("step.failed", ({ name, step, durationMs }) => {
        failures.add(1, name, step);
        if (durationMs !== null) stepDuration.observe(durationMs / 1_000, name, step);
      }),
      events.on("step.retried", ({ name, step, durationMs }) => {
        retries.add(1, name, step);
        stepDuration.observe(durationMs / 1_000, name, step);
      }),
      events.on("signal.delivered", ({ name, event }) => signals.add(1, name, event)),
      events.on("sweeper.swept", ({ runs }) => swept.add(runs)),
      events.on("claim", ({ queue, runs, durationMs }) => {
        claimDuration.observe(durationMs / 1_000);
        if (runs === 0) {
          empty.add(1, queue);
          return;
        }
        claims.add(1, queue);
        claimed.add(runs, queue);
      }),
      events.on("flush", ({ what, size, durationMs }) => {
        batch.observe(size, what);
        flushDuration.observe(durationMs / 1_000, what);
      }),
      events.on("batch", ({ name, size }) => called.observe(size, name)),
      events.on("commit.stale", ({ name }) => stale.add(1, name)),
      events.on("schedule.fired", ({ schedule, lateMs }) => {
        scheduled.add(1, schedule);
        scheduleLateness.observe(lateMs / 1_000);
      }),
      events.on("schedule.skipped", ({ schedule }) => scheduleSkipped.add(1, schedule)),
      events.on("schedule.failed", ({ schedule }) => scheduleFailed.add(1, schedule)),
      events.on("bulk.worked", ({ action, done, skipped, failed }) => {
        for (const [outcome, runs] of Object.entries({ done, skipped, failed })) {
          if (runs > 0) bulk.add(runs, action, outcome);
        }
      }),
      events.on("reaper.reaped", ({ runs }) => reaped.add(runs)),
      events.on("run.throttled", ({ queue, runs }) => throttled.add(runs, queue)),
      events.on("run.unique_lost", ({ name }) => uniqueLost.add(1, name)),
      events.on("lease.lost", () => leases.add(1)),
    ];
    this.#lag.enable();
  }

  /** The metrics as text for Prometheus. */
  text(): string {
    return expose(this.#all);
  }

  close(): void {
    for (const off of this.#offs) off();
    this.#lag.disable();
  }

  /** Subtracts the resolution of the timer, which is not lag. */
  #readLag(): Reading[] {
    const seconds = (nanoseconds: number): number =>
      Math.max(nanoseconds / 1e9 - lagResolutionMs / 1e3, 0) || 0;
    const read: Reading[] = [
      [seconds(this.#lag.percentile(50)), "0.5"],
      [seconds(this.#lag.percentile(99)), "0.99"],
      [seconds(this.#lag.max), "1"],
    ];
    this.#lag.reset();
    return read;
  }
}
