/** A server as a process of its own, for the bench `remote`: tells its URL, and its memory whenever it is asked. */

import { createServer } from "@pawl/server";

const server = await createServer({ database: process.env["DATABASE_URL"], port: 0 });
process.send?.({ url: await server.listen() });
process.on("message", (message) => {
  if (message === "memory") {
    globalThis.gc?.();
    process.send?.({ rssBytes: process.memoryUsage().rss });
  } else {
    void server.close().then(() => process.exit(0));
  }
});
