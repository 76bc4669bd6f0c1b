/**
 * The metrics of one worker: what it counts, what the database knows, if that is asked for, and the port where both are shown. Owned by
 * the worker.
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

  /** Shows them where they are to be shown. */
  async open({ gauges }: WorkerTransport, logger: Logger): Promise<void> {
    if (this.#settings?.database && gauges !== undefined) this.#gauges = new Gauges(gauges);
    if (this.#settings === null || this.#settings.port === null) return;
    this.#server = new MetricsServer(() => this.text(), logger);
    await this.#server.listen(this.#settings.port, this.#settings.host);
  }

  async text(): Promise<string> {
    if (this.#counted === null) {
      throw new InvalidOption("this worker counts nothing: serve was given metrics: false; leave that out");
    }
    return this.#counted.text() + ((await this.#gauges?.text()) ?? "");
  }

  async close(): Promise<void> {
    await this.#server?.close();
    this.#counted?.close();
  }
}
