import { connect, job, serve } from "pawl";
import { Compile } from "typebox/compile";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { type ApiDocument, operationsOf } from "../support/http/openapi.js";
import { testServer } from "../support/server.js";

const { url } = await testDatabase();
const { server, call } = await testServer({ database: url });
const document = (await call("GET", "/v1/openapi.json")).body as ApiDocument;
const operations = operationsOf(document);

describe("the OpenAPI document", () => {
  it("lists every route, and no other", () => {
    const documented = operations.map(({ method, path }) => `${method} ${path}`);
    const routes = server.routes
      .filter(({ method }) => method !== "HEAD")
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    expect(documented.toSorted()).toEqual(routes.toSorted());
  });

  it("is of version 3.1, with a title and a security scheme that it uses", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.info).toMatchObject({ title: "Pawl", version: expect.any(String) });
    expect(Object.keys(document.components.securitySchemes)).toEqual(document.security.flatMap(Object.keys));
  });

  it("gives every operation an id of its own and a summary", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(ids.every((id) => /^[a-z][A-Za-z]+$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
    expect(operations.filter(({ operation }) => !operation.summary)).toEqual([]);
  });

  it.each(operations)(
    "$method $path has the parameters of its path, and schemas that compile",
    ({ path, operation }) => {
      const { parameters = [], requestBody, responses } = operation;
      const inPath = parameters.filter((parameter) => parameter.in === "path");
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(inPath.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
      expect(inPath.every(({ required }) => required)).toBe(true);
      const schemas = [
        ...parameters.map(({ schema }) => schema),
        ...Object.values(requestBody?.content ?? {}).map(({ schema }) => schema),
        ...Object.values(responses).flatMap(({ content = {} }) =>
          Object.values(content).map(({ schema }) => schema),
        ),
      ];
      for (const schema of schemas) expect(() => Compile(schema)).not.toThrow();
      expect(Object.values(responses).every(({ description }) => typeof description === "string")).toBe(true);
    },
  );

  it("names every answer in JSON as a component, and refers to it", () => {
    const inlined = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { responses }]) =>
        Object.entries(responses)
          .filter(([, { content = {} }]) =>
            Object.entries(content).some(([type, { schema }]) => /json/.test(type) && !("$ref" in schema)),
          )
          .map(([status]) => `${method} ${path} ${status}`),
      ),
    );
    expect(inlined).toEqual([]);
    const names = [
      "Run",
      "Step",
      "Problem",
      "Schedule",
      "Limit",
      "Worker",
      "Definition",
      "Series",
      "Finding",
    ];
    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(names));
  });

  it.each(operations)("$method $path says what it answers, problems too", ({ operation: { responses } }) => {
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(["4XX", "5XX"]));
    expect(Object.keys(responses["4XX"]!.content ?? {})).toEqual(["application/problem+json"]);
    expect(Object.keys(responses).some((status) => /^2\d\d$/.test(status))).toBe(true);
  });
});

interface AnySchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, AnySchema>>;
  readonly additionalProperties?: boolean | AnySchema;
  readonly items?: AnySchema;
  readonly anyOf?: readonly AnySchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

/** The names of the members that may be anything: any value, or an object with any members. */
function freeMembers(schema: AnySchema, name: string): string[] {
  const { type, properties = {}, additionalProperties: others = true, items, anyOf = [] } = schema;
  const isWord = schema.enum !== undefined || schema.const !== undefined;
  const isAny = type === undefined && anyOf.length === 0 && !isWord;
  return [
    ...(isAny || (type === "object" && others === true) ? [name] : []),
    ...(typeof others === "object" ? freeMembers(others, name) : []),
    ...Object.entries(properties).flatMap(([member, inner]) => freeMembers(inner, member)),
    ...anyOf.flatMap((inner) => freeMembers(inner, name)),
    ...(items === undefined ? [] : freeMembers(items, name)),
  ];
}

describe("the worker protocol in the document", () => {
  const calls = operations.filter(({ path }) => path.startsWith("/v1/workers/"));

  it("has no free-form objects: only values of users are anything, and errors may have more members", () => {
    const free = calls.flatMap(({ operation: { requestBody, responses } }) =>
      [requestBody, responses["200"]]
        .flatMap((content) => Object.values(content?.content ?? {}))
        .flatMap(({ schema }) => freeMembers(schema as AnySchema, "body")),
    );
    expect([...new Set(free)].toSorted()).toEqual(["cause", "error", "info", "input", "output", "payload"]);
  });

  it("names its parts as components, each kind of a transition, a journal entry and a verdict too", () => {
    const names = Object.keys(document.components.schemas);
    expect(names).toEqual(expect.arrayContaining(["ClaimedRun", "Commit", "JournalEntry", "NewRun"]));
    for (const name of ["Transition", "JournalChange", "CommitVerdict", "RecordVerdict"]) {
      const { anyOf, discriminator } = document.components.schemas[name] as {
        anyOf: { $ref: string }[];
        discriminator: { propertyName: string; mapping: Record<string, string> };
      };
      expect(anyOf.length).toBeGreaterThan(4);
      expect(anyOf.map(({ $ref }) => $ref)).toEqual(Object.values(discriminator.mapping));
      for (const { $ref } of anyOf) expect(names).toContain($ref.replace("#/components/schemas/", ""));
    }
  });
});

describe("an answer is what the document says", () => {
  const greet = job({
    name: "greet",
    run: (_ctx, input: unknown) => ({ input, nested: [{ at: new Date() }] }),
  });
  const worker = serve([greet], { url });
  const pawl = connect(url);
  let runId: string;
  beforeAll(async () => {
    ({ runId } = await pawl.start(greet, { who: "ann" }));
    await pawl.result(runId);
    await pawl.limits.set("mail", { allowed: 1, period: "1s" });
  });
  afterAll(async () => {
    await worker.stop();
    await pawl.close();
  });

  it.each([
    ["POST", "/v1/workflows/{name}/runs", "/v1/workflows/greet/runs", { input: 1 }],
    [
      "POST",
      "/v1/runs/batch",
      "/v1/runs/batch",
      { runs: [{ name: "greet" }, { name: "greet", queue: "!" }], atomic: false },
    ],
    ["POST", "/v1/runs/ended", "/v1/runs/ended", { runIds: ["RUN", "1"] }],
    ["GET", "/v1/runs/{id}", "/v1/runs/RUN", undefined],
    ["GET", "/v1/runs/{id}/steps", "/v1/runs/RUN/steps", undefined],
    ["GET", "/v1/runs/{id}/why", "/v1/runs/RUN/why", undefined],
    ["GET", "/v1/runs/{id}", "/v1/runs/1", undefined],
    ["POST", "/v1/runs/{id}/signals/{event}", "/v1/runs/RUN/signals/x", {}],
    ["DELETE", "/v1/runs/{id}", "/v1/runs/RUN", undefined],
    ["POST", "/v1/runs/{id}/rerun", "/v1/runs/RUN/rerun", { input: { who: "bob" } }],
    ["POST", "/v1/runs/{id}/rerun", "/v1/runs/1/rerun", {}],
    ["GET", "/v1/runs/{id}", "/v1/runs/RUN", undefined],
    ["POST", "/v1/bulk", "/v1/bulk", { action: "rerun", where: { name: "greet" }, dryRun: true }],
    ["POST", "/v1/bulk", "/v1/bulk", { action: "rerun", where: { name: "greet", status: "failed" } }],
    ["GET", "/v1/bulk", "/v1/bulk", undefined],
    ["GET", "/v1/bulk/{id}", "/v1/bulk/1", undefined],
    ["GET", "/v1/bulk/{id}/results", "/v1/bulk/1/results", undefined],
    ["DELETE", "/v1/bulk/{id}", "/v1/bulk/1", undefined],
    ["GET", "/v1/actions", "/v1/actions", undefined],
    ["GET", "/v1/runs", "/v1/runs", undefined],
    ["GET", "/v1/workflows", "/v1/workflows", undefined],
    ["GET", "/v1/series", "/v1/series?by=hour&name=greet", undefined],
    ["GET", "/v1/failures", "/v1/failures", undefined],
    ["GET", "/v1/waiting", "/v1/waiting", undefined],
    ["GET", "/v1/keys", "/v1/keys", undefined],
    ["GET", "/v1/limits/{name}/slots", "/v1/limits/mail/slots", undefined],
    ["GET", "/v1/definitions", "/v1/definitions", undefined],
    ["GET", "/v1/workers", "/v1/workers", undefined],
    ["GET", "/v1/doctor", "/v1/doctor", undefined],
    ["PUT", "/v1/limits/{name}", "/v1/limits/mail", { allowed: 2, period: 5 }],
    ["GET", "/v1/limits", "/v1/limits", undefined],
    ["PUT", "/v1/schedules/{name}", "/v1/schedules/nightly", { cron: "@daily", start: "greet", input: 1 }],
    ["GET", "/v1/schedules/{name}", "/v1/schedules/nightly", undefined],
    ["GET", "/v1/schedules", "/v1/schedules", undefined],
    ["POST", "/v1/schedules/{name}/pause", "/v1/schedules/nightly/pause", {}],
    ["POST", "/v1/schedules/{name}/resume", "/v1/schedules/nightly/resume", {}],
    ["POST", "/v1/schedules/{name}/trigger", "/v1/schedules/nightly/trigger", {}],
    [
      "POST",
      "/v1/schedules/{name}/backfill",
      "/v1/schedules/nightly/backfill",
      { from: "2020-01-01", to: "2020-01-03" },
    ],
    ["DELETE", "/v1/schedules/{name}", "/v1/schedules/nightly", undefined],
    ["POST", "/v1/workers/schedules", "/v1/workers/schedules", { name: "w", every: "1h", start: "greet" }],
  ])("%s %s as %s", async (method, path, concrete, body) => {
    const given = JSON.parse(JSON.stringify(body ?? null).replace("RUN", runId)) as unknown;
    const answer = await call(method, concrete.replace("RUN", runId), given ?? undefined);
    const { responses } = operations.find((one) => one.method === method && one.path === path)!.operation;
    const told = responses[answer.status] ?? responses[`${Math.floor(answer.status / 100)}XX`];
    const type = answer.headers.get("content-type")!.replace(/;.*$/, "");
    const schema = told?.content?.[type]?.schema;
    expect(schema, `${answer.status} ${type}`).toBeDefined();
    expect(Compile(schema!).Errors(answer.body)).toEqual([]);
  });
});
