import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { fuzz } from "../../support/http/fuzz.js";
import { testServer } from "../../support/server.js";

const { url, sql } = await testDatabase();
const { url: address, call } = await testServer({ database: url, maxPayloadBytes: 20_000 });
const pawl = connect(url);
afterAll(() => pawl.close());

// `npm run fuzz` does the same for longer.
it("no request made of the OpenAPI document, right or wrong, makes the server fail", async () => {
  const { runId } = await pawl.start("fuzz", { a: { b: 1 } });
  const seed = Number(process.env["PAWL_FUZZ_SEED"] ?? Math.floor(Math.random() * 1e6));
  const report = await fuzz({ url: address, seed, durationMs: 5_000, runId });
  expect(report.failures.slice(0, 5), `seed ${seed}`).toEqual([]);
  expect(report.requests).toBeGreaterThan(300);
  // It got past the checks: the requests are not all wrong.
  expect([...report.succeeded]).toEqual(expect.arrayContaining(["startRun", "listRuns", "getRun"]));
  expect(Object.keys(report.statuses)).toEqual(expect.arrayContaining(["200", "404", "422"]));
  expect((await call("GET", "/readyz")).status).toBe(200);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  const [broken] = await sql<{ count: string }>(
    "select count(*) from runs where id < first_message_id() and name !~ '^[a-z0-9][a-z0-9_-]{0,47}$'",
  );
  expect(broken!.count).toBe("0");
});
