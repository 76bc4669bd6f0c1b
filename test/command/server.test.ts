import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { pawl, startPawl } from "./pawl.js";

const { url } = await testDatabase({ empty: true });

describe("pawl server", () => {
  it("demands the schema, makes it with --migrate, listens, and ends gracefully by SIGTERM", async () => {
    const missing = await pawl(["server", "--port", "0"], { url });
    expect(missing).toEqual({
      code: 1,
      stdout: "",
      stderr: 'pawl: the database has no schema "pawl" of Pawl yet; run: pawl migrate\n',
    });
    const server = startPawl(["server", "--port", "0", "--migrate"], { url });
    const [, address = ""] = await until(
      "it listens",
      () => /^listening at (http:\S+)\n$/.exec(server.stdout()),
      30_000,
    );
    expect(await (await fetch(`${address}/readyz`)).json()).toEqual({ status: "ready" });
    server.process.kill("SIGTERM");
    expect(await server.ended).toMatchObject({ code: 0, stderr: "" });
  });

  it("tells in one line that its port is taken", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await pawl(["server", "--port", String(port)], { url });
    other.close();
    expect([code, stderr]).toEqual([
      1,
      `pawl: port ${port} is in use: give another with --port or PAWL_PORT\n`,
    ]);
  });
});
