import { connect, job, migrate, serve as serveWorker, Unavailable, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent, testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, url, directUrl } = database;

const echo = job({ name: "echo", input: type<{ n: number }>(), run: (_ctx, input) => input.n });
const parked = job({ name: "parked", queue: "nobody", run: () => 0 });
await serve([echo]);

const countRuns = async (): Promise<number> =>
  Number((await sql<{ n: string }>("select count(*) as n from runs"))[0]!.n);

describe("options are validated, and nothing is written", () => {
  const bad: [string, () => unknown, RegExp][] = [
    [
      "an unknown option of start",
      () => pawl.start(echo, { n: 1 }, { dely: 1 } as never),
      /unknown option "dely".*did you mean "delay"/,
    ],
    [
      "a delay without a unit",
      () => pawl.start(echo, { n: 1 }, { delay: "5" as never }),
      /delay must be a duration/,
    ],
    ["delay and at", () => pawl.start(echo, { n: 1 }, { delay: 1, at: new Date() }), /not both/],
    ["a bad date", () => pawl.start(echo, { n: 1 }, { at: "soon" }), /at must be a Date/],
    [
      "a date beyond the calendar",
      () => pawl.start(echo, { n: 1 }, { at: new Date(8.64e15) }),
      /at must be a Date/,
    ],
    [
      "a bad input of an item",
      () => pawl.startMany(echo, [{ input: { n: 1 } }, { input: { n: 1n } as never }]),
      /items\[1\]\.input\.n/,
    ],
    ["a duration that no timer takes", () => serveWorker([echo], { url, maxStepDuration: "30d" }), /24 days/],
    [
      "a URL where options belong",
      () => migrate("postgres://me:secret@x/y" as never),
      /must be an object, not a string/,
    ],
    ["a priority that is no smallint", () => pawl.start(echo, { n: 1 }, { priority: 1e6 }), /priority/],
    ["a long unique key", () => pawl.start(echo, { n: 1 }, { uniqueKey: "x".repeat(513) }), /512/],
    ["a scope without a key", () => pawl.start(echo, { n: 1 }, { uniqueScope: ["runnable"] }), /uniqueKey/],
    [
      "a phase that is none",
      () => pawl.start(echo, { n: 1 }, { uniqueKey: "a", uniqueScope: ["running" as never] }),
      /uniqueScope/,
    ],
    ["a step for a job", () => pawl.start(echo, { n: 1 }, { step: "start" }), /machines/],
    ["something that is no definition", () => pawl.start({ name: "x" } as never, {} as never), /definition/],
    ["a bad name", () => pawl.start("Not A Name", {}), /name of a definition/],
    ["an input that JSON cannot carry", () => pawl.start(echo, { n: 1n } as never), /input\.n/],
    ["an input that is too large", () => pawl.start("echo", "x".repeat(1_100_000)), /1100002|bytes/],
    ["an item without input", () => pawl.startMany(echo, [{} as never]), /item 0/],
    ["a list that is none", () => pawl.startMany(echo, {} as never), /startMany takes an array/],
    [
      "an unknown option of result",
      () => pawl.result("64", { timout: 1 } as never),
      /did you mean "timeout"/,
    ],
    ["a run id that is no string", () => pawl.result(64 as never), /run id/],
    ["a limit out of range", () => pawl.runs.list({ limit: 1_000 }), /limit/],
    ["a made-up cursor", () => pawl.runs.list({ cursor: "abc" }), /cursor/],
    ["an unknown option of connect", () => connect(url, { scheme: "x" } as never), /did you mean "schema"/],
    ["a URL of something else", () => connect("mysql://x"), /postgres:\/\//],
    ["a schema of a server", () => connect("http://localhost:8080", { schema: "x" }), /schema.*server/],
    ["a token that no header takes", () => connect("http://localhost:8080", { token: "a b" }), /token/],
    ["a token for a database", () => connect(url, { token: "x" }), /token is for a server/],
    ["a password in the URL of a server", () => connect("http://me:pw@localhost"), /option token/],
    ["no definitions", () => serveWorker([], { url }), /at least one/],
    ["a definition twice", () => serveWorker([echo, echo], { url }), /twice/],
    [
      "a heartbeat too slow for the lease",
      () => serveWorker([echo], { url, lease: "3s", heartbeat: "2s" }),
      /third of the lease/,
    ],
    [
      "a lease that no machine can hold",
      () => serveWorker([echo], { url, lease: "100ms", heartbeat: "30ms" }),
      /lease must be from 1000 ms to 24 days, not "100ms": a shorter lease expires/,
    ],
    ["a queue that is missing", () => serveWorker([echo], { url, queues: { mail: 1 } }), /whole list/],
    [
      "an unknown option of serve",
      () => serveWorker([echo], { url, concurrency: 5 } as never),
      /unknown option "concurrency"/,
    ],
    ["a concurrency of nothing", () => serveWorker([echo], { url, queues: { default: 0 } }), /concurrency/],
    ["a logger that is none", () => serveWorker([echo], { url, logger: {} as never }), /logger\.debug/],
    ["an unknown option of migrate", () => migrate({ urls: url } as never), /did you mean "url"/],
  ];
  it.each(bad)("%s", async (_what, call, message) => {
    const before = await countRuns();
    await expect((async () => call())()).rejects.toThrow(message);
    expect(await countRuns()).toBe(before);
  });
});

describe("the database", () => {
  it("without the schema: an error that names migrate, from connect and from serve", async () => {
    const schema = "not_there";
    const lost = connect(url, { schema });
    await expect(lost.start("echo", {})).rejects.toMatchObject({
      code: "Unavailable",
      message: expect.stringContaining('migrate({ url, schema: "not_there" })') as string,
    });
    const worker = serveWorker([echo], { url, schema, logger: silent });
    await expect(worker.ready).rejects.toThrow(/migrate/);
    await worker.stop();
    await lost.close();
  });

  it.each([
    ["a wrong password", (at: URL) => void (at.username = "nobody_of_that_name"), "28"],
    ["a database that does not exist", (at: URL) => void (at.pathname = "/not_there"), "3D000"],
  ])("with %s: an error of Pawl with the address and what to do, from serve too", async (_what, change) => {
    const wrong = new URL(directUrl);
    change(wrong);
    const client = connect(wrong.href);
    const error = await client.start("echo", {}).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "Unavailable",
      message: expect.stringMatching(/refused: .*\. (Check|Create)/) as string,
    });
    const worker = serveWorker([echo], { url: wrong.href, logger: silent });
    await expect(worker.ready).rejects.toMatchObject({ code: "Unavailable" });
    await client.close();
  });

  it("is found by the URL given, PAWL_URL, DATABASE_URL; in production there is no local one", async () => {
    const environment = { ...process.env };
    try {
      process.env["DATABASE_URL"] = "postgres://127.0.0.1:1/second";
      process.env["PAWL_URL"] = "postgres://127.0.0.1:1/first";
      const at = (name: string) => ({ code: "Unavailable", database: `127.0.0.1:1/${name}` });
      await expect(connect().start("x")).rejects.toMatchObject(at("first"));
      await expect(connect("postgres://127.0.0.1:1/given").start("x")).rejects.toMatchObject(at("given"));
      delete process.env["PAWL_URL"];
      await expect(connect().start("x")).rejects.toMatchObject(at("second"));
      process.env["DATABASE_URL"] = "mysql://x";
      expect(() => connect()).toThrow(/DATABASE_URL/);
      delete process.env["DATABASE_URL"];
      process.env["NODE_ENV"] = "production";
      expect(() => connect()).toThrow(/no database.*production/);
      expect(() => serveWorker([echo])).toThrow(/no database/);
      await expect(migrate()).rejects.toThrow(/no database/);
    } finally {
      process.env = environment;
    }
  });

  it("that is away: Unavailable, which names the address beside its message and never the password", async () => {
    const away = connect("postgres://me:secret@127.0.0.1:1/nowhere");
    const error = (await away.start("echo", {}).catch((thrown: unknown) => thrown)) as Unavailable;
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.database).toBe("127.0.0.1:1/nowhere");
    expect(error.message).not.toMatch(/secret|127|nowhere/);
    expect(error.message).toMatch(
      /ECONNREFUSED.*\. Check that it is running, and that host and port.*\. The call was not executed$/,
    );
    await away.close();
  });

  it("a closed client refuses further calls and ends the waiting ones", async () => {
    const closing = connect(url);
    const { runId } = await closing.start(parked, null);
    const waiting = closing.result(runId);
    const settled = expect(waiting).rejects.toBeInstanceOf(Unavailable);
    await closing.close();
    await settled;
    await expect(closing.start(echo, { n: 1 })).rejects.toBeInstanceOf(Unavailable);
    await closing.close();
  });

  it("another schema name keeps its runs apart", async () => {
    const schema = 'Odd "name"';
    await migrate({ url, schema });
    const odd = connect(url, { schema });
    const worker = serveWorker([echo], { url, schema, logger: silent });
    await worker.ready;
    const { runId } = await odd.start(echo, { n: 3 });
    expect(await odd.result(runId)).toBe(3);
    expect((await odd.runs.list()).runs).toHaveLength(1);
    await worker.stop();
    await odd.close();
  });
});
