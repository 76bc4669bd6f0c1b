/** What a caller is told when the database refuses: ask again only where asking again can help. */
import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { testServer } from "../../support/server.js";

const { url, sql, connect: open } = await testDatabase();
const faults: Record<string, unknown>[] = [];
const logger = { ...silent, error: (fields: unknown) => void faults.push({ ...(fields as object) }) };
const { url: address, call, server } = await testServer({ database: url, logger });

it("a definition that is registered twice in one call is refused, with the field that repeats it", async () => {
  const definition = { name: "twice", version: 3, kind: "job", queue: "q", priority: 0, retentionMs: 1_000 };
  const body = { workerId: "w", leaseMs: 60_000, queues: ["q"], info: {} };
  const definitions = [definition, { ...definition, version: 4 }, definition];
  const answer = await call("POST", "/v1/workers/register", { ...body, definitions });
  expect(answer.status).toBe(422);
  expect(answer.body).toMatchObject({ code: "InvalidOption", field: "body.definitions.2" });
  expect(await sql("select from workers where id = 'w'")).toEqual([]);
});

it("an error of the database that nobody foresaw is a fault with a request id, not an invitation to ask again", async () => {
  let requests = 0;
  server.app.server.on("request", () => void requests++);
  await sql("alter table limits rename to mislaid");
  afterAll(() => sql("alter table mislaid rename to limits"));
  const answer = await call("GET", "/v1/limits", undefined, { "x-request-id": "request-7" });
  expect(answer.status).toBe(500);
  expect(answer.body).toMatchObject({ code: "Internal", instance: "request-7" });
  expect(answer.headers.get("retry-after")).toBeNull();
  expect(faults).toMatchObject([{ sqlState: "42P01", requestId: "request-7" }]);
  expect(JSON.stringify(faults)).not.toContain("detail");

  // The library does not send it again by itself either.
  const before = requests;
  const pawl = connect(address);
  await expect(pawl.limits.list()).rejects.toMatchObject({ code: "Unavailable" });
  await pawl.close();
  expect(requests).toBe(before + 1);
});

it("a lock that was not to be had in time may be asked for again", async () => {
  const other = await open();
  await sql(`alter function pawl.list_subscriptions(text, bigint, int) set lock_timeout = '50ms'`);
  await other.query("begin");
  await other.query("lock table subscriptions in access exclusive mode");
  const answer = await call("GET", "/v1/subscriptions");
  await other.query("rollback");
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toBe("1");
});
