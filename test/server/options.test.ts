import { createServer, readEnvironment, type ServerOptions } from "@pawl/server";
import { InvalidOption, PawlError } from "pawl";
import { describe, expect, it } from "vitest";
import { readPage, rowNames, sectionOf } from "../docs/pages.js";
import { testDatabase } from "../support/database.js";

const { url, sql } = await testDatabase();

describe("createServer refuses", () => {
  it.each([
    [{ prot: 1 }, 'unknown option "prot" in the options of createServer; allowed: database, schema,'],
    [{ prot: 1 }, 'did you mean "port"?'],
    [{ port: "8080" }, 'port must be a whole number from 0 to 65535, not "8080"'],
    [{ port: 70_000 }, "not 70000"],
    [{ host: "" }, "host must be a string that is not empty"],
    [{ database: "mysql://x" }, "database must be a string that begins with postgres://"],
    [{ pool: 0 }, "pool must be a whole number from 1"],
    [{ maxConnections: 1 }, "maxConnections must be a whole number from 10"],
    [{ maxRetentionDays: 0 }, "maxRetentionDays must be a whole number from 1"],
    [{ sweepInterval: "5" }, "sweepInterval must be a duration"],
    [{ drainTimeout: "90d" }, "drainTimeout must be from 0 ms to 24 days"],
    [{ proxyAuth: "1" }, 'proxyAuth must be true or false, not "1"'],
    [{ logger: {} }, "logger.debug must be a function"],
    [{ schema: "pg_x" }, "schema must not be"],
  ])("%j", async (options, message) => {
    const creating = createServer(options as unknown as ServerOptions);
    await expect(creating).rejects.toThrow(PawlError);
    await expect(creating).rejects.toThrow(message);
  });

  it("a database without the schema, and says how to get it", async () => {
    await expect(createServer({ database: url, schema: "elsewhere" })).rejects.toThrow("migrate");
  });
});

it("the guide lists every option, and no other", async () => {
  const error: unknown = await createServer({ wrong: 1 } as ServerOptions).catch((thrown: unknown) => thrown);
  const allowed = (error as Error).message.replace(/^.*; allowed: /s, "").split(", ");
  expect(rowNames(sectionOf("docs/server.md", "Options")).toSorted()).toEqual(allowed.toSorted());
});

it("the ceiling of retention is stored when it is given, and left alone otherwise", async () => {
  const ceiling = async () =>
    (await sql<{ days: string }>("select retention_ceiling::text as days from settings"))[0]!.days;
  for (const options of [{ maxRetentionDays: 10 }, {}]) {
    await (await createServer({ database: url, ...options })).close();
    expect(await ceiling()).toBe("10 days");
  }
});

describe("the environment", () => {
  it("is empty by default", () => {
    const { options, warnings } = readEnvironment({});
    expect(Object.values(options).filter((value) => value !== undefined)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it("names every option that an operator needs", () => {
    const { options } = readEnvironment({
      DATABASE_URL: "postgres://db",
      PAWL_URL: "http://ignored",
      PAWL_SCHEMA: "mine",
      PAWL_HOST: "0.0.0.0",
      PAWL_PORT: "9000",
      PAWL_TOKENS: "a:read:0123456789abcdef, b:write:fedcba9876543210\n",
      PAWL_PROXY_AUTH: "0",
      PAWL_MAX_RETENTION_DAYS: "90",
      PAWL_SWEEPER_INTERVAL_MS: "1000",
      PAWL_DELIVERY_ALLOW_PRIVATE: "1",
    });
    expect(options).toEqual({
      database: "postgres://db",
      schema: "mine",
      host: "0.0.0.0",
      port: 9_000,
      tokens: ["a:read:0123456789abcdef", "b:write:fedcba9876543210"],
      proxyAuth: false,
      maxRetentionDays: 90,
      sweepInterval: 1_000,
      allowPrivateDeliveries: true,
    });
  });

  it("may use the older names", () => {
    const { options } = readEnvironment({
      WORKFLOWS_MAX_RETENTION_DAYS: "7",
      WORKFLOWS_SWEEPER_INTERVAL_MS: "0",
    });
    expect(options).toMatchObject({ maxRetentionDays: 7, sweepInterval: false });
  });

  it.each([
    ["PAWL_PORT", "http", 'PAWL_PORT must be a whole number, not "http"'],
    ["PAWL_PROXY_AUTH", "yes", 'PAWL_PROXY_AUTH must be 1 or 0, not "yes"'],
    ["PAWL_MAX_RETENTION_DAYS", "-1", "PAWL_MAX_RETENTION_DAYS must be a whole number"],
  ])("is refused with %s=%s", (name, value, message) => {
    expect(() => readEnvironment({ [name]: value })).toThrow(InvalidOption);
    expect(() => readEnvironment({ [name]: value })).toThrow(message);
  });

  it("is listed in the guide", () => {
    const listed = rowNames(sectionOf("docs/server.md", "Environment"));
    const text = readPage("docs/server.md");
    expect(listed.length).toBeGreaterThan(8);
    for (const name of ["PAWL_TOKENS", "PAWL_PROXY_AUTH", "PAWL_SWEEPER_INTERVAL_MS"])
      expect(listed).toContain(name);
    expect(text).toContain("WORKFLOWS_MAX_RETENTION_DAYS");
  });
});
