/** A TCP proxy before a test database that can be cut, to see how clients and workers live through an outage. */

import { connect, createServer, type Socket } from "node:net";
import { afterAll } from "vitest";
import pg from "pg";

export interface Proxy {
  readonly url: string;
  /** Ends all connections and refuses new ones. */
  cut(): void;
  restore(): void;
}

export async function proxyTo(target: string): Promise<Proxy> {
  const { host, port } = new pg.Client({ connectionString: target });
  const address = host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((incoming) => {
    incoming.on("error", () => {});
    if (isCut) {
      incoming.destroy();
      return;
    }
    const outgoing = connect(address);
    outgoing.on("error", () => incoming.destroy());
    for (const socket of [incoming, outgoing]) {
      sockets.add(socket);
      socket.on("close", () => {
        sockets.delete(socket);
        incoming.destroy();
        outgoing.destroy();
      });
    }
    incoming.pipe(outgoing).pipe(incoming);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = new URL(target);
  url.search = "";
  url.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  return {
    url: url.href,
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    restore: () => {
      isCut = false;
    },
  };
}
