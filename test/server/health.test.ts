import { afterAll, expect, it } from "vitest";
import { createServer } from "@pawl/server";
import { testDatabase } from "../support/database.js";

const { url } = await testDatabase();
const server = await createServer({ database: url, port: 0 });
afterAll(() => server.close());

it("a server tells that it runs and that it can serve", async () => {
  const address = await server.listen();
  expect(await (await fetch(`${address}/healthz`)).json()).toEqual({ status: "ok" });
  expect(await (await fetch(`${address}/readyz`)).json()).toEqual({ status: "ready" });
});
