/** A worker process of the fault tests: serves until it is killed or told to stop by SIGTERM. */

import { existsSync, readdirSync } from "node:fs";
import { serve, type ServeOptions } from "pawl";
import { fragile, journey, leaving, slow, suicidal } from "./definitions.js";
import { poisons } from "./poison.js";
import { shapes, stresses } from "./shapes.js";

const given = JSON.parse(process.env["SERVE_OPTIONS"] ?? "{}") as ServeOptions;
const worker = serve([...shapes, ...stresses, ...poisons, suicidal, fragile, leaving, slow, journey], {
  queues: { default: 40 },
  lease: "2s",
  heartbeat: "400ms",
  reapInterval: "200ms",
  maxPollInterval: "200ms",
  ...given,
});
await worker.ready;
process.send?.("ready");

/** What a worker holds that could grow: the heap after a collection, open files (where the system says so), listeners, timers and sockets. */
function sample(): void {
  globalThis.gc?.();
  process.send?.({
    heapBytes: process.memoryUsage().heapUsed,
    files: existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd").length : 0,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
    resources: process.getActiveResourcesInfo().length,
  });
}
process.on("message", sample);

async function stop(): Promise<void> {
  await worker.stop();
  process.send?.("stopped");
  // One that stays is killed by its test.
  if (process.env["STAYS"] === undefined) process.exit(0);
}
process.on("SIGTERM", () => void stop());
