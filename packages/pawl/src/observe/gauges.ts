/**
 * The gauges of a database: depth and age of its queues; unserved, throttled, blocked and executing
 * runs; slots of concurrency limits; open bulk operations; live workers. One bounded call reads them,
 * at most every ten seconds, however often Prometheus scrapes. Used by the server, and by workers with `metrics: { database: true }`.
 */

import type { StoredGauge } from "../store/store.js";
import { expose, Gauge, type Reading } from "./exposition.js";

const keptMs = 10_000;
/** Counting stops here. */
const maxCounted = 10_000;

export type ReadGauges = (maxCounted: number) => Promise<readonly StoredGauge[]>;

export class Gauges {
  readonly #read: ReadGauges;
  readonly #gauges: readonly Gauge[];
  #known: readonly StoredGauge[] = [];
  #readAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(read: ReadGauges) {
    this.#read = read;
    const of = (
      gauge: StoredGauge["gauge"],
      name: string,
      help: string,
      labels: readonly string[] = [],
    ): Gauge => new Gauge({ name, help, labels }, () => this.#readings(gauge));
    this.#gauges = [
      of("depth", "pawl_queue_depth", `Runs that are due and wait for a worker, up to ${maxCounted}.`, [
        "queue",
      ]),
      of("age", "pawl_queue_age_seconds", "How long the oldest due run has waited.", ["queue"]),
      of("unserved", "pawl_unserved_runs", `Runs that no live worker serves, up to ${maxCounted}.`, [
        "workflow",
        "version",
      ]),
      of(
        "slots",
        "pawl_limit_slots",
        `Slots of a concurrency limit: its size (per key), and over all keys those used and the runs waiting, up to ${maxCounted}.`,
        ["limit", "state"],
      ),
      of("throttled", "pawl_throttled_runs", "Runs postponed by their rate limit.", ["limit"]),
      of("executing", "pawl_executing_runs", "Runs that workers of all processes execute.", ["workflow"]),
      of("blocked", "pawl_blocked_runs", `Runs that wait for their partition key, up to ${maxCounted}.`),
      of("paused", "pawl_paused_runs", `Runs that are paused themselves, up to ${maxCounted}.`),
      of("pause_age", "pawl_pause_age_seconds", "How long a queue or a definition has been paused.", [
        "scope",
        "name",
      ]),
      of("bulk_left", "pawl_bulk_runs_left", "Runs that open bulk operations have not reached, as counted.", [
        "action",
      ]),
      of(
        "bulk_idle",
        "pawl_bulk_idle_seconds",
        "How long an open bulk operation has made no progress, the longest of each action.",
        ["action"],
      ),
      of("workers", "pawl_workers", "Live workers."),
    ];
  }

  /** The gauges as text. Rejects if the database is unreachable. */
  async text(): Promise<string> {
    if (performance.now() - this.#readAtMs >= keptMs) {
      this.#reading ??= this.#refresh().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
    return expose(this.#gauges);
  }

  async #refresh(): Promise<void> {
    this.#known = await this.#read(maxCounted);
    this.#readAtMs = performance.now();
  }

  #readings(gauge: StoredGauge["gauge"]): Reading[] {
    return this.#known
      .filter((known) => known.gauge === gauge)
      .map(({ first, second, value }) => [value, first ?? "", second ?? ""]);
  }
}
