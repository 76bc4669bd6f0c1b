/** A server on a test database, in a thread of its own: what blocks the loop of a test does not block the server. */

import { parentPort, workerData } from "node:worker_threads";
import { createServer } from "@pawl/server";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const server = await createServer({
  database: workerData as string,
  port: 0,
  reapInterval: "100ms",
  // What a sweep deletes is looked at by the tests, which call for it themselves.
  sweepInterval: false,
  // Laws publish to URLs of the world: nothing may go there.
  deliveries: false,
  logger: silent,
});
parentPort!.postMessage(await server.listen());
parentPort!.once("message", () => void server.close().then(() => parentPort!.postMessage("closed")));
