import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect } from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../docs/pages.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { relayCalls } from "../../support/http/relayed-calls.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const token = "python-token-of-the-tests";
const readerToken = "reader-token-of-the-tests";
const { url } = await testServer({
  database: database.url,
  tokens: [`python:worker:${token}`, `reader:read:${readerToken}`],
  logger: silent,
});
const pawl = connect(database.url);
afterAll(() => pawl.close());

const python = spawnSync("python3", ["--version"]);
const isAbsent = python.error !== undefined || python.status !== 0;
if (isAbsent) console.warn("python3 is absent: the tests of examples/python-worker are skipped");
// Where changes are judged, nothing is skipped.
const mayBeSkipped = isAbsent && process.env["CI"] === undefined;

describe.skipIf(mayBeSkipped)("a worker in Python (skipped if python3 is absent)", () => {
  const workers: ChildProcess[] = [];
  const api = { calls: [] as string[], isHolding: false, isFailing: false, held: [] as ServerResponse[] };
  /** The API of somebody else, which the steps of the workflow call. */
  const somebody = createServer((request, response) => {
    const what = request.url!.slice(1);
    api.calls.push(what);
    if (what === "charge" && api.isHolding) api.held.push(response);
    else response.writeHead(what === "charge" && api.isFailing ? 503 : 200).end(`${what}d`);
    if (what === "charge") api.isFailing = false;
  });

  beforeAll(async () => {
    await once(somebody.listen(0, "127.0.0.1"), "listening");
  });
  afterAll(async () => {
    for (const worker of workers) worker.kill("SIGKILL");
    somebody.closeAllConnections();
    somebody.close();
  });

  async function startWorker(
    at: string,
    leaseSeconds: number,
  ): Promise<{ process: ChildProcess; output: () => string }> {
    const child = spawn("python3", [join(root, "examples/python-worker/main.py")], {
      env: {
        ...process.env,
        PAWL_URL: at,
        PAWL_TOKEN: token,
        PAWL_LEASE: String(leaseSeconds),
        PYTHONDONTWRITEBYTECODE: "1",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    workers.push(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    }
    await until("it has registered", async () => {
      if (child.exitCode !== null) throw new Error(`the worker has ended: ${output}`);
      const id = `%-${child.pid}-%`;
      return (await sql("select from workers where id like $1 and owner = 'python'", [id])).length > 0;
    });
    return { process: child, output: () => output };
  }

  const phase = async (runId: string): Promise<string> => (await pawl.runs.get(runId)).phase;

  it("serves a job, a machine and a workflow; killed in the middle, another one completes them", async () => {
    const relay = await relayCalls(url, readerToken);
    const first = await startWorker(relay.url, 3);

    // A job, also one whose first attempt fails.
    expect(await pawl.result((await pawl.start("shout", "hi")).runId)).toBe("HI!");
    const flaky = await pawl.start("shout", "flaky");

    // A machine: retry, await with a match, spawn and children; and a timeout.
    const order = await pawl.start("order", { items: ["a", "b"] });
    await until("it waits", async () => (await phase(order.runId)) === "awaiting_signal");
    await pawl.signal(order.runId, "paid", { currency: "USD", amount: 1 });
    await pawl.signal(order.runId, "paid", { currency: "EUR", amount: 42 });
    expect(await pawl.result(order.runId)).toEqual({ status: "shipped", amount: 42, labels: ["A!", "B!"] });
    const late = await pawl.start("order", { items: [], timeoutMs: 50 });
    expect(await pawl.result(late.runId)).toEqual({ status: "expired" });
    expect(await pawl.result(flaky.runId)).toBe("FLAKY!");

    // A workflow that is in its second step, and a machine that waits, when the worker is killed.
    const parked = await pawl.start("order", { items: ["c"] });
    await until("it waits", async () => (await phase(parked.runId)) === "awaiting_signal");
    const { port } = somebody.address() as AddressInfo;
    api.isHolding = true;
    const user = { email: "ada@example.com", api: `http://127.0.0.1:${port}` };
    const signUp = await pawl.start("sign-up", user);
    await until("the second step is being done", () => api.held.length === 1);
    first.process.kill("SIGKILL");
    await once(first.process, "exit");
    api.isHolding = false;
    api.isFailing = true;
    api.calls.length = 0;

    const second = await startWorker(relay.url, 60);
    await until("it waits for its event", async () => (await phase(signUp.runId)) === "awaiting_signal");
    await pawl.signal(signUp.runId, "confirmed", { email: "somebody@else", code: 1 });
    await pawl.signal(signUp.runId, "confirmed", { email: user.email, code: 7 });
    expect(await pawl.result(signUp.runId, { timeout: "100s" })).toEqual({
      account: "created",
      code: 7,
      missed: null,
      greeting: "HELLO ADA@EXAMPLE.COM!",
    });
    // What was recorded is not done again, by whichever worker; what failed is tried again.
    expect(api.calls).toEqual(["charge", "charge"]);
    const steps = await pawl.runs.steps(signUp.runId);
    expect(steps.map(({ name, kind, status }) => [name, kind, status])).toEqual([
      ["create-account", "run", "completed"],
      ["charge", "run", "completed"],
      ["cool-down", "sleep", "completed"],
      ["confirmed", "wait", "completed"],
      ["never-sent", "wait", "completed"],
      ["greet", "invoke", "completed"],
    ]);
    await pawl.signal(parked.runId, "paid", { currency: "EUR", amount: 1 });
    expect(await pawl.result(parked.runId)).toEqual({ status: "shipped", amount: 1, labels: ["C!"] });

    // It stops by itself, and leaves nothing behind.
    second.process.kill("SIGTERM");
    expect(await once(second.process, "exit"), second.output()).toEqual([0, null]);
    expect(await sql("select from runs where locked_by is not null")).toEqual([]);

    // All that was sent and answered is what the OpenAPI document says.
    expect(relay.violations).toEqual([]);
    const commits = ["await", "done", "keep", "retry", "spawn", "suspend"].map((kind) => `commit ${kind}`);
    const records = ["invoke", "retry", "run", "sleep", "wait"].map((op) => `record ${op}`);
    expect([...relay.seen].toSorted()).toEqual([...commits, ...records]);
    relay.close();
  });

  it("begins no further step of a paused workflow, and goes on after the resume", async () => {
    const worker = await startWorker(url, 60);
    const { port } = somebody.address() as AddressInfo;
    api.isHolding = true;
    api.held.length = 0;
    const user = { email: "eve@example.com", api: `http://127.0.0.1:${port}` };
    const { runId } = await pawl.start("sign-up", user);
    await until("the second step is being done", () => api.held.length === 1);
    await pawl.runs.pause(runId);
    api.isHolding = false;
    api.held[0]!.writeHead(200).end("charged");
    await until("it is released", async () => (await phase(runId)) !== "executing");
    const names = async () => (await pawl.runs.steps(runId)).map(({ name }) => name);
    expect(await names()).toEqual(["create-account", "charge"]);
    expect(await phase(runId)).toBe("runnable");
    await pawl.runs.resume(runId);
    await pawl.signal(runId, "confirmed", { email: user.email, code: 8 });
    expect(await pawl.result(runId, { timeout: "60s" })).toMatchObject({ account: "created", code: 8 });
    worker.process.kill("SIGTERM");
    expect(await once(worker.process, "exit"), worker.output()).toEqual([0, null]);
  });

  it("loses no answer that matters: calls whose answers are lost are sent again, and nothing is done twice", async () => {
    api.calls.length = 0;
    const relay = await relayCalls(url, readerToken, {
      // The call is executed, and its answer never comes: the third of each kind, and every third after it.
      isLost: (call, count) => ["claim", "commit", "record", "release"].includes(call) && count % 3 === 0,
    });
    const worker = await startWorker(relay.url, 60);
    const { port } = somebody.address() as AddressInfo;
    const emails = Array.from({ length: 4 }, (_, index) => `user-${index}@example.com`);
    const runs = await Promise.all(
      emails.map(async (email) => {
        const { runId } = await pawl.start("sign-up", { email, api: `http://127.0.0.1:${port}` });
        await pawl.signal(runId, "confirmed", { email, code: 1 });
        const order = await pawl.start("order", { items: [email] });
        await pawl.signal(order.runId, "paid", { currency: "EUR", amount: 1 });
        return { signUp: runId, order: order.runId };
      }),
    );
    for (const [index, { signUp, order }] of runs.entries()) {
      const label = `${emails[index]!.toUpperCase()}!`;
      expect(await pawl.result(signUp, { timeout: "100s" })).toMatchObject({ greeting: `HELLO ${label}` });
      expect(await pawl.result(order, { timeout: "100s" })).toMatchObject({ labels: [label] });
    }
    expect(relay.lost).toBeGreaterThan(10);
    expect(api.calls.filter((call) => call === "create")).toHaveLength(4);
    expect(api.calls.filter((call) => call === "charge")).toHaveLength(4);
    expect(relay.violations).toEqual([]);
    worker.process.kill("SIGTERM");
    expect(await once(worker.process, "exit"), worker.output()).toEqual([0, null]);
    relay.close();
  });
});
