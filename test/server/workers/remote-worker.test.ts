import { existsSync, readFileSync } from "node:fs";
import { createServer as createPlainServer } from "node:http";
import { join } from "node:path";
import { child, connect, job, type Logger, machine, NotSupported, serve, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { root } from "../../docs/pages.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { testServer } from "../../support/server.js";
import { filesApart, testsApart } from "../../support/setup/transports.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const token = "worker-token-of-the-tests";
const tokens = [`workers:worker:${token}`, "callers:read+write:callers-token-of-the-tests"];
const { url } = await testServer({ database: database.url, sweepInterval: "50ms", tokens, logger: silent });
const direct = connect(database.url);
const pawl = connect(url, { token: "callers-token-of-the-tests", logger: silent });
afterAll(async () => {
  await direct.close();
  await pawl.close();
});

describe("a worker behind a server", () => {
  it("executes what others start, whichever way: jobs, machines and workflows", async () => {
    const echo = job({ name: "echo", run: (_ctx, n: number) => n + 1 });
    const walk = machine({
      name: "walk",
      steps: { start: (ctx) => ctx.next("end", { n: 1 }), end: (ctx) => ctx.done("walked") },
    });
    const flow = workflow({
      name: "flow",
      run: async (ctx, n: number) => {
        const one = await ctx.step.run("one", () => n + 1);
        await ctx.step.sleep("nap", 20);
        return await ctx.step.invoke("child", echo, one);
      },
    });
    const worker = serve([echo, walk, flow], { url, token, logger: silent });
    await worker.ready;
    for (const caller of [direct, pawl]) {
      expect(await caller.result((await caller.start(echo, 1)).runId)).toBe(2);
      expect(await caller.result((await caller.start(walk, {})).runId)).toBe("walked");
      expect(await caller.result((await caller.start(flow, 5)).runId)).toBe(7);
    }
    await worker.stop();
  });

  it("hears by a beat that runs were cancelled, a whole tree of them, and lets them go", async () => {
    const open = gate();
    const signals: AbortSignal[] = [];
    const busy = job({
      name: "busy",
      queue: "busy",
      run: (ctx) => {
        signals.push(ctx.signal);
        return open.pass();
      },
    });
    const parent = machine({
      name: "parent",
      queue: "busy",
      steps: {
        start: (ctx) => ctx.spawn("end", [child(busy, null), child(busy, null)], ctx.state),
        end: (ctx) => ctx.done(),
      },
    });
    const worker = serve([busy, parent], { url, token, heartbeat: "100ms", logger: silent });
    await worker.ready;
    const { runId } = await direct.start(parent, {});
    await until("both run", () => signals.length === 2);
    expect(await direct.runs.cancel(runId, { cascade: true })).toEqual({ cancelled: 3 });
    await until("both are aborted", () => signals.every(({ aborted }) => aborted));
    open.open();
    await until("nobody holds them", async () => {
      return (await sql("select from runs where queue = 'busy' and locked_by is not null")).length === 0;
    });
    await worker.stop();
  });

  it("has no transactions: NotSupported is an error of the step, and says what to do", async () => {
    const transacting = job({
      name: "transacting",
      maxAttempts: 1,
      run: (ctx) => ctx.transaction(async () => null),
    });
    const worker = serve([transacting], { url, token, logger: silent });
    await worker.ready;
    const { runId } = await pawl.start(transacting, null);
    await expect(pawl.result(runId)).rejects.toMatchObject({
      error: { code: "NotSupported", message: expect.stringContaining("postgres://") as string },
    });
    await worker.stop();
  });

  it("is not ready with a token that the server does not know, and says so", async () => {
    const echo = job({ name: "echo", run: () => 1 });
    const stranger = serve([echo], { url, token: "unknown", logger: silent });
    await expect(stranger.ready).rejects.toMatchObject({ code: "Unauthorized" });
    const caller = serve([echo], { url, token: "callers-token-of-the-tests", logger: silent });
    await expect(caller.ready).rejects.toMatchObject({ code: "Forbidden" });
  });

  it("releases a run of a version that it does not serve, and reports WorkflowVersionMismatch", async () => {
    const released: unknown[] = [];
    let claims = 0;
    const answers: Record<string, (body: { claimId?: string }) => object> = {
      register: () => ({}),
      unregister: () => ({ held: 0 }),
      heartbeat: () => ({ alive: true, cancelled: {}, held: null }),
      claim: () => ({ runs: claims++ === 0 ? [{ ...aRun, version: 9 }] : [], more: false }),
      release: (body) => {
        released.push(body);
        return { released: ["64"] };
      },
    };
    const mistaken = createPlainServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const call = request.url!.replace("/v1/workers/", "");
        const answer = answers[call]?.(JSON.parse(Buffer.concat(parts).toString()) as object) ?? {};
        response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
      });
    });
    await new Promise<void>((resolve) => mistaken.listen(0, "127.0.0.1", resolve));
    const { port } = mistaken.address() as { port: number };
    const errors: unknown[] = [];
    const logger: Logger = { ...silent, error: (details: unknown) => void errors.push(details) };
    const worker = serve([job({ name: "versioned", run: () => 1 })], {
      url: `http://127.0.0.1:${port}`,
      logger,
    });
    await worker.ready;
    await until("it is released", () => released.length > 0);
    expect(released[0]).toMatchObject({ claims: [{ runId: "64" }] });
    expect(errors).toMatchObject([
      { runId: "64", err: { code: "WorkflowVersionMismatch", expected: 1, got: 9 } },
    ]);
    await worker.stop();
    mistaken.closeAllConnections();
    mistaken.close();
  });
});

const aRun = {
  runId: "64",
  name: "versioned",
  version: 1,
  step: null,
  priority: 0,
  attempt: 0,
  crashes: 0,
  parentId: null,
  partitionKey: null,
  timedOut: false,
  children: null,
  inboxSeq: 0,
  inbox: [],
  input: "null",
  state: null,
  journal: [],
  waiting: [],
  uniqueLost: false,
};

describe("the server", () => {
  it("deletes runs past their retention for its workers", async () => {
    const short = job({ name: "short", retention: 0, run: () => 1 });
    const worker = serve([short], { url, token, logger: silent });
    await worker.ready;
    const { runId } = await direct.start(short, null);
    await until(
      "it is gone",
      async () => (await sql("select from runs where id = $1", [runId])).length === 0,
    );
    await worker.stop();
  });
});

describe("a client behind a server", () => {
  it("has no within, and says what to do", () => {
    expect(() => pawl.within({} as never)).toThrow(NotSupported);
    expect(() => pawl.within({} as never)).toThrow(/postgres:\/\//);
  });

  it("answers Unavailable with advice when there is no server", async () => {
    const lost = connect("http://127.0.0.1:1", { logger: silent });
    await expect(lost.start("x")).rejects.toMatchObject({
      code: "Unavailable",
      message: expect.stringMatching(/127\.0\.0\.1:1 cannot be reached.*Check the URL/) as string,
    });
    await lost.close();
    await expect(lost.start("x")).rejects.toThrow(/closed/);
  });

  it("says of whatever is no Pawl server that it is none", async () => {
    const other = createPlainServer((_request, response) => response.writeHead(404).end("<html>"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    const lost = connect(`http://127.0.0.1:${port}/`, { logger: silent });
    await expect(lost.runs.get("64")).rejects.toThrow(/status 404.*Is that a Pawl server/);
    other.closeAllConnections();
    other.close();
  });
});

describe("the laws that are told apart over HTTP", () => {
  it("are all there", () => {
    const textOf = (file: string): string => readFileSync(join(root, "test/laws", file), "utf8");
    for (const file of Object.keys(filesApart)) expect(existsSync(join(root, "test/laws", file))).toBe(true);
    for (const [file, tests] of Object.entries(testsApart)) {
      for (const name of Object.keys(tests)) expect(textOf(file)).toContain(`it("${name}"`);
    }
  });
});
