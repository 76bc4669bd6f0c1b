/**
 * A Pawl server as a separate process. Its parent sends the database; it answers with its URL, and
 * on request with its resource usage.
 */

import { createServer } from "@pawl/server";

export type ServerOrder = { readonly kind: "listen"; readonly database: string } | { readonly kind: "usage" };
export type ServerReport =
  | { readonly kind: "listening"; readonly url: string }
  | { readonly kind: "usage"; readonly cpuMs: number; readonly memoryBytes: number };

const tell = (report: ServerReport): void => void process.send?.(report);

process.on("message", (order: ServerOrder) => {
  if (order.kind === "usage") {
    globalThis.gc?.();
    const { user, system } = process.cpuUsage();
    tell({ kind: "usage", cpuMs: (user + system) / 1_000, memoryBytes: process.memoryUsage.rss() });
  } else void listen(order.database);
});
process.on("disconnect", () => process.exit());

async function listen(database: string): Promise<void> {
  const server = await createServer({ database, port: 0 });
  tell({ kind: "listening", url: await server.listen() });
}
