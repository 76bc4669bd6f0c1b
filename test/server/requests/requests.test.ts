import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";

const { url, sql } = await testDatabase();
const { call, url: address } = await testServer({ database: url, maxPayloadBytes: 10_000 });

const post = async (path: string, body: string | Buffer, headers: Record<string, string> = {}) => {
  const answer = await fetch(address + path, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });
  return {
    status: answer.status,
    headers: answer.headers,
    body: (await answer.json()) as Record<string, unknown>,
  };
};
const start = "/v1/workflows/refused/runs";

describe("a body is refused", () => {
  it.each([
    ["that is not JSON", "{", 400, "BadRequest", "body", "the body is not JSON"],
    ["that is not UTF-8", Buffer.from([0x22, 0xff, 0x22]), 400, "BadRequest", "body", "not UTF-8"],
    ["that is no object", "5", 422, "InvalidOption", "body", "body must be an object, not 5"],
    ["with an unknown field", '{"inptu":1}', 422, "InvalidOption", "body.inptu", 'did you mean "input"?'],
    [
      "with a field of every object",
      '{"__proto__":{}}',
      422,
      "InvalidOption",
      "body.__proto__",
      "unknown field",
    ],
    [
      "with a number in quotes",
      '{"priority":"5"}',
      422,
      "InvalidOption",
      "body.priority",
      'a whole number from -32768 to 32767, not "5"',
    ],
    [
      "with a boolean for a text",
      '{"queue":true}',
      422,
      "InvalidOption",
      "body.queue",
      "must be a string, not true",
    ],
    [
      "with a wrong alternative",
      '{"delay":true}',
      422,
      "InvalidOption",
      "body.delay",
      "a number from 0 on or a string, not true",
    ],
    [
      "with a wrong item",
      '{"uniqueKey":"u","uniqueScope":["runnable","x"]}',
      422,
      "InvalidOption",
      "body.uniqueScope.1",
      "one of runnable,",
    ],
    ["with a wrong name", '{"queue":"No!"}', 422, "InvalidOption", undefined, "the name of a queue must be"],
    [
      "with both forms of one option",
      '{"delay":5,"delaySeconds":5}',
      422,
      "InvalidOption",
      undefined,
      "give delay or delaySeconds, not both",
    ],
    ["with an unknown limit", '{"rateLimit":"unknown"}', 422, "InvalidOption", undefined, "unknown"],
    ["with half a surrogate pair", '{"input":"\\ud800"}', 422, "NotSerializable", undefined, "input"],
    [
      "with a number that JSON cannot give back",
      '{"input":1e999}',
      422,
      "NotSerializable",
      undefined,
      "Infinity",
    ],
    [
      "that is too deep",
      `{"input":${"[".repeat(200)}${"]".repeat(200)}}`,
      422,
      "NotSerializable",
      undefined,
      "deep",
    ],
    [
      "with too long an input",
      JSON.stringify({ input: "x".repeat(10_001) }),
      413,
      "PayloadTooLarge",
      undefined,
      "10000",
    ],
    [
      "that is too long",
      JSON.stringify({ input: "x".repeat(100_000) }),
      413,
      "PayloadTooLarge",
      undefined,
      "body is larger",
    ],
  ])("%s", async (_what, body, status, code, field, detail) => {
    const answer = await post(start, body);
    expect(answer).toMatchObject({ status, body: { type: `urn:pawl:error:${code}`, code, status } });
    expect(answer.body["field"]).toBe(field);
    expect(answer.body["detail"]).toContain(detail);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  it("of another type", async () => {
    expect(await post(start, "a=1", { "content-type": "application/x-www-form-urlencoded" })).toMatchObject({
      status: 415,
      body: { code: "UnsupportedMediaType" },
    });
  });

  it("and nothing is written", async () => {
    expect(await sql("select 1 from runs")).toEqual([]);
  });
});

describe("a problem", () => {
  it("tells what the library would", async () => {
    const { body } = await post(start, '{"input":{"a":["\\u0000"]}}');
    expect(body).toMatchObject({
      type: "urn:pawl:error:NotSerializable",
      title: "Not serializable",
      status: 422,
      path: "input.a[0]",
    });
  });

  it("of a path that there is none of is 404, of another method 405", async () => {
    expect(await call("GET", "/v2/runs")).toMatchObject({ status: 404, body: { code: "RouteNotFound" } });
    const wrong = await call("PATCH", "/v1/runs/64");
    expect(wrong).toMatchObject({ status: 405, body: { code: "MethodNotAllowed" } });
    expect(wrong.headers.get("allow")).toBe("DELETE, GET");
  });

  it("of a path that is not encoded properly is 400, of one that is too long 414", async () => {
    expect(await call("GET", "/v1/runs/%zz")).toMatchObject({ status: 400, body: { code: "BadRequest" } });
    expect((await call("GET", `/v1/runs/${"9".repeat(2_000)}`)).status).toBe(414);
  });
});

describe("the id of a request", () => {
  it("is the one that was given, in the header and in the problem", async () => {
    const answer = await call("GET", "/v1/runs/1", undefined, { "x-request-id": "abc-123" });
    expect(answer.headers.get("x-request-id")).toBe("abc-123");
    expect(answer.body).toMatchObject({ instance: "abc-123" });
  });

  it.each(["", "a b", "x".repeat(129), "<script>"])("%j is replaced by a new one", async (given) => {
    const answer = await call("GET", "/v1/runs/1", undefined, { "x-request-id": given });
    expect(answer.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
  });
});
