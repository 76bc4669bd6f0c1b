/**
 * Asks the operating system for a port on 127.0.0.1 that nobody uses. Another process may take it
 * before PostgreSQL does; the caller tries again then.
 */
import { once } from "node:events";
import { createServer } from "node:net";

export async function findFreePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("the system gave no port");
  return address.port;
}
