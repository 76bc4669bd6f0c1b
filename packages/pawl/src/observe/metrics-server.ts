/** Serves `GET /metrics` of a worker on its own port, for Prometheus. Owned by the worker. */

import { createServer, type Server } from "node:http";
import type { Logger } from "../values/logger.js";
import { expositionType } from "./exposition.js";

export class MetricsServer {
  readonly #server: Server;
  readonly #logger: Logger;

  constructor(read: () => Promise<string>, logger: Logger) {
    this.#logger = logger;
    this.#server = createServer((request, response) => {
      if (request.method !== "GET" || request.url?.replace(/\?.*$/s, "") !== "/metrics") {
        response
          .writeHead(404, { "content-type": "text/plain" })
          .end("not found; this port serves GET /metrics only\n");
        return;
      }
      read().then(
        (text) => response.writeHead(200, { "content-type": expositionType }).end(text),
        (error: unknown) => {
          logger.warn({ err: error }, "pawl: could not read the metrics");
          response.writeHead(503, { "content-type": "text/plain" }).end("unavailable\n");
        },
      );
    });
    this.#server.unref();
  }

  /** Begins to listen. Rejects if the port is not available. */
  listen(port: number, host: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) =>
          this.#logger.error({ err: error }, "pawl: the metrics server failed"),
        );
        resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
