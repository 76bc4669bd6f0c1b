/**
 * What the metrics show of a database: depth and age of its queues, runs that nobody serves, that are put off, blocked or executed, and live
 * workers. Read by one bounded call, at most every ten seconds, however often it is asked for. Used by the server and by workers that are told to.
 */

import type { StoredGauge } from "../store/store.js";
import { expose, Gauge, type Reading } from "./exposition.js";

const keptMs = 10_000;
/** What is more than this is not counted. */
const most = 10_000;

export type ReadGauges = (most: number) => Promise<readonly StoredGauge[]>;

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
      of("depth", "pawl_queue_depth", `Runs that are due and wait for a worker, up to ${most}.`, ["queue"]),
      of("age", "pawl_queue_age_seconds", "How long the first of them has been due.", ["queue"]),
      of("unserved", "pawl_unserved_runs", `Runs that no live worker serves, up to ${most}.`, [
        "workflow",
        "version",
      ]),
      of("throttled", "pawl_throttled_runs", "Runs that their rate limit has put off.", ["limit"]),
      of("executing", "pawl_executing_runs", "Runs that workers execute, wherever.", ["workflow"]),
      of("blocked", "pawl_blocked_runs", `Runs that wait for their partition key, up to ${most}.`),
      of("workers", "pawl_workers", "Workers that are alive."),
    ];
  }

  /** Their text. Rejects if the database cannot be asked. */
  async text(): Promise<string> {
    if (performance.now() - this.#readAtMs >= keptMs) {
      this.#reading ??= this.#refresh().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
    return expose(this.#gauges);
  }

  async #refresh(): Promise<void> {
    this.#known = await this.#read(most);
    this.#readAtMs = performance.now();
  }

  #readings(gauge: StoredGauge["gauge"]): Reading[] {
    return this.#known
      .filter((known) => known.gauge === gauge)
      .map(({ first, second, value }) => [value, first ?? "", second ?? ""]);
  }
}
