/**
 * A proxy before a test database that counts the statements that pass: each is one round trip, whichever way the driver sends it
 * (a simple query, or a group that ends with Sync). What connects by its URL shares no nudges with what connects directly, as if
 * it were another process.
 */

import { connect, createServer, type Socket } from "node:net";
import { afterAll } from "vitest";
import pg from "pg";
import { Messages } from "./messages.js";

export interface CountingProxy {
  readonly url: string;
  /** How many statements have been sent so far, by the function of the schema they call. */
  counts(): Readonly<Record<string, number>>;
}

/** All statements between two looks, and those of each kind, for the message of a failure. */
export function sentSince(proxy: CountingProxy): () => { total: number; kinds: Record<string, number> } {
  const before = proxy.counts();
  return () => {
    const kinds = Object.fromEntries(
      Object.entries(proxy.counts())
        .map(([kind, count]) => [kind, count - (before[kind] ?? 0)] as const)
        .filter(([, count]) => count > 0),
    );
    return { total: Object.values(kinds).reduce((sum, count) => sum + count, 0), kinds };
  };
}

export async function countingProxyTo(target: string): Promise<CountingProxy> {
  const { host, port } = new pg.Client({ connectionString: target });
  const address = host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
  const sockets = new Set<Socket>();
  const counts: Record<string, number> = {};
  const server = createServer((client) => {
    const database = connect(address);
    for (const socket of [client, database]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        database.destroy();
      });
    }
    const asked = new Messages({ fromClient: true });
    let text = "";
    client.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of asked.take(chunk)) {
        if (type === "P" || type === "Q") text = bytes.toString("latin1");
        if (type !== "S" && type !== "Q") continue;
        const kind = /"pawl"\.(\w+)\(/.exec(text)?.[1] ?? "other";
        counts[kind] = (counts[kind] ?? 0) + 1;
        text = "";
      }
    });
    client.pipe(database).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = new URL(target);
  url.search = "";
  url.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  return { url: url.href, counts: () => ({ ...counts }) };
}
