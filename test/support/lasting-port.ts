/**
 * A port for a server that a test ends and starts again. It is below the ports that systems give to
 * clients and to `listen(0)`. So no other process takes it while the server is down, and no client
 * that reconnects meanwhile gets it as its own port, which would connect the client to itself.
 */

import { once } from "node:events";
import { createServer } from "node:net";

const lowest = 15_000;
const highest = 30_000;

export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    const server = createServer().listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
