/**
 * The metrics of one worker: its counters, the gauges of the database if asked for, and the port
 * that serves both. Owned by the worker.
 */

import { InvalidOption } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import type { Events } from "../observe/events.js";
import type { Reading } from "../observe/exposition.js";
import { Gauges } from "../observe/gauges.js";
import { Metrics } from "../observe/metrics.js";
import { MetricsServer } from "../observe/metrics-server.js";
import type { ServeSettings } from "./options.js";
import type { WorkerTransport } from "./transport.js";

export class WorkerMetrics {
  readonly #settings: ServeSettings["metrics"];
  readonly #counted: Metrics | null;
  #gauges: Gauges | null = null;
  #server: MetricsServer | undefined;

  constructor(
    settings: ServeSettings["metrics"],
    events: Pick<Events, "on">,
    inFlight: () => Iterable<Reading>,
  ) {
    this.#settings = settings;
    this.#counted = settings === null ? null : new Metrics(events, inFlight);
  }

  /** Serves them on the port, if there is one. */
  async open({ gauges }: WorkerTransport, logger: Logger): Promise<void> {
    if (this.#settings?.database && gauges !== undefined) this.#gauges = new Gauges(gauges);
    if (this.#settings === null || this.#settings.port === null) return;
    this.#server = new MetricsServer(() => this.text(), logger);
    await this.#server.listen(this.#settings.port, this.#settings.host);
  }

  async text(): Promise<string> {
    if (this.#counted === null) {
      throw new InvalidOption(
        "this worker has no metrics: it was started with metrics: false; leave that option out",
      );
    }
    return this.#counted.text() + ((await this.#gauges?.text()) ?? "");
  }

  async close(): Promise<void> {
    await this.#server?.close();
    this.#counted?.close();
  }
}
