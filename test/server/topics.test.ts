import { expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";

const database = await testDatabase();
const { call } = await testServer({ database: database.url, deliveries: false });

it("topics work by plain requests", async () => {
  const path = `/v1/topics/${encodeURIComponent("rest.#")}/subscriptions`;
  const created = await call("POST", path, { type: "queue", queue: "rest" });
  expect(created).toMatchObject({ status: 201, body: { created: true } });
  expect(await call("POST", path, { type: "queue", queue: "rest" })).toMatchObject({ status: 200 });
  const { id } = created.body as { id: string };
  expect(await call("GET", path)).toMatchObject({
    body: { subscriptions: [{ id, pattern: "rest.#", target: { type: "queue", queue: "rest" } }] },
  });
  const publish = (): ReturnType<typeof call> =>
    call("POST", "/v1/topics/rest.a/messages", { body: 1 }, { "idempotency-key": "once" });
  expect(await publish()).toMatchObject({ status: 201, body: { messages: 1, created: true } });
  expect(await publish()).toMatchObject({ status: 200, body: { messages: 1, created: false } });
  expect(await call("DELETE", `/v1/topics/other/subscriptions/${id}`)).toMatchObject({ status: 404 });
  expect(await call("DELETE", `${path}/${id}`)).toMatchObject({ status: 200, body: { deleted: true } });
  expect(await call("DELETE", `${path}/${id}`)).toMatchObject({ status: 404 });
  expect(await call("DELETE", `${path}/none`)).toMatchObject({ status: 404 });
  expect(await call("POST", path, { type: "queue", queue: "rest", more: 1 })).toMatchObject({ status: 422 });
});
