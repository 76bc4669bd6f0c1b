/** A server process of the fault tests, on the port that it is given: serves until it is killed. */

import { createServer } from "@pawl/server";

const server = await createServer({
  database: process.env["DATABASE_URL"],
  port: Number(process.env["PORT"] ?? "0"),
  reapInterval: "200ms",
});
process.send?.(await server.listen());
process.on("SIGTERM", () => void server.close().then(() => process.exit(0)));
