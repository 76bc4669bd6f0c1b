/** The server that is fuzzed, a process of its own, so that its end would be seen. Told the database by its parent. */

import { createServer } from "@pawl/server";

process.once("message", (database: string) => void listen(database));
process.on("disconnect", () => process.exit());

async function listen(database: string): Promise<void> {
  const server = await createServer({ database, port: 0 });
  process.send?.(await server.listen());
}
