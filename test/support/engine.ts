/** A client and workers on a test database (straight, or through a server), with fast timings, ended when the file ends. */

import { connect, type AnyDefinition, type Pawl, serve, type ServeOptions, type Worker } from "pawl";
import { afterAll } from "vitest";
import type { TestDatabase } from "./database.js";

export const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** A lease for tests in which it is lost: short, and yet kept by a machine that is busy with other work. */
export const shortLease = { lease: "3s", heartbeat: "100ms" } as const;

export interface TestEngine {
  readonly pawl: Pawl;
  /** Starts a worker and waits until it claims. */
  serve(definitions: readonly AnyDefinition[], options?: ServeOptions): Promise<Worker>;
}

export function testEngine(database: TestDatabase): TestEngine {
  const url = database.server ?? database.url;
  const pawl = connect(url);
  const workers: Worker[] = [];
  // Before the database is dropped: hooks run in reverse order.
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await pawl.close();
  });
  return {
    pawl,
    serve: async (definitions, options) => {
      const worker = serve(definitions, {
        url,
        lease: "6s",
        heartbeat: "400ms",
        reapInterval: "100ms",
        drainTimeout: "1s",
        logger: silent,
        ...options,
      });
      workers.push(worker);
      await worker.ready;
      return worker;
    },
  };
}
