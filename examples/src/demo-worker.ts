/**
 * A worker of the demo. `demo.ts` starts it as a separate process, so that it can kill it. The
 * lease is short, so that the recovery is quick; in production, use the defaults.
 */

import { type Logger, serve } from "pawl";
import { order } from "./order.js";
import { tell, type ToWorker } from "./outside.js";

const log = (details: object | string, message?: string): void =>
  tell({ kind: "log", message: typeof details === "string" ? details : (message ?? "") });
const logger: Logger = { debug: () => {}, info: () => {}, warn: log, error: log };

// The database is the one that PAWL_URL names.
const worker = serve([order], { lease: "2s", heartbeat: "400ms", reapInterval: "200ms", logger });

process.on("message", (message: ToWorker) => {
  if (message.kind === "stop") void worker.stop().then(() => process.disconnect());
});
// Ctrl-C reaches all processes of a terminal: the demo ends its workers itself. Without the demo,
// nothing is left to do.
process.on("SIGINT", () => {});
process.once("disconnect", () => process.exit());

await worker.ready;
tell({ kind: "ready" });
