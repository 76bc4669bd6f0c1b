import {
  connect,
  job,
  type Limit,
  type Page,
  type Run,
  serve,
  signal,
  type Step,
  type Why,
  workflow,
} from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { pawl, pawlJson } from "./pawl.js";

const { url } = await testDatabase();
const double = job({
  name: "double",
  run: (_ctx, n: number) => n * 2,
});
const order = workflow({
  name: "order",
  signals: { paid: signal<{ euros: number }>() },
  run: async ({ step }, input: { item: string }) => {
    const reservation = await step.run("reserve", () => `R-${input.item}`);
    const paid = await step.waitForEvent("paid");
    return { reservation, euros: paid.euros };
  },
});
const worker = serve([double, order], { url });
await worker.ready;
const client = connect(url);
afterAll(async () => {
  await worker.stop();
  await client.close();
});

const suspended = (runId: string): Promise<Run> =>
  until("it is suspended", async () => {
    const run = await client.runs.get(runId);
    return run.phase === "awaiting_signal" ? run : null;
  });

describe("pawl runs signal, cancel and why", () => {
  it("signal wakes a run, once per dedup key", async () => {
    const { runId } = await client.start(order, { item: "ratchet" });
    const send = (): ReturnType<typeof pawl> =>
      pawl(["runs", "signal", runId, "paid", '{"euros":25}', "--dedup-key", "click"], { url });
    expect((await send()).stdout).toBe(`delivered to run ${runId}\n`);
    expect(await client.result(runId)).toEqual({ reservation: "R-ratchet", euros: 25 });
    expect(await send()).toEqual({
      code: 0,
      stdout: `run ${runId} already has a signal with this dedup key\n`,
      stderr: "",
    });
  });

  it("why says what a run waits for", async () => {
    const { runId } = await client.start(order, { item: "pawl" });
    await suspended(runId);
    const { code, stdout } = await pawl(["runs", "why", runId], { url });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      new RegExp(
        `^run ${runId} is suspended in step "paid" \\(since .*\\) and waits for the signal "paid"; .*\n$`,
      ),
    );
    expect(await pawlJson<Why>(["runs", "why", runId], { url })).toMatchObject({
      reason: "suspended",
      names: ["paid"],
    });
  });

  it("cancel ends it, once", async () => {
    const { runId } = await client.start(order, { item: "ratchet" });
    const cancel = (): ReturnType<typeof pawl> =>
      pawl(["runs", "cancel", runId, "--reason", "twice", "--cascade"], { url });
    expect(await cancel()).toEqual({ code: 0, stdout: "cancelled 1 run\n", stderr: "" });
    expect(await cancel()).toEqual({ code: 0, stdout: `run ${runId} is already cancelled\n`, stderr: "" });
    expect((await client.runs.get(runId)).error?.message).toContain("twice");
  });

  it("a run that does not exist, or has ended, is told in one line", async () => {
    expect(await pawl(["runs", "show", "1"], { url })).toEqual({
      code: 1,
      stdout: "",
      stderr: 'pawl: there is no run "1"\n',
    });
    const { runId } = await client.start(double, 1);
    await client.result(runId);
    const { code, stderr } = await pawl(["runs", "cancel", runId], { url });
    expect([code, stderr]).toEqual([
      1,
      `pawl: run ${runId} has already ended (completed) and cannot be cancelled\n`,
    ]);
  });
});

describe("pawl steps and pawl limits", () => {
  it("steps lists what is recorded and what is pending", async () => {
    const { runId } = await client.start(order, { item: "ratchet" });
    await suspended(runId);
    const { stdout } = await pawl(["steps", runId], { url });
    const [head, reserve, paid] = stdout.split("\n").map((line) => line.split(/\s{2,}/));
    expect(head).toEqual(["STEP", "KIND", "STATUS", "ATTEMPT", "STARTED", "TOOK", "OUTPUT"]);
    expect(reserve).toEqual([
      "reserve",
      "run",
      "completed",
      "1",
      expect.stringMatching(/Z$/),
      expect.stringMatching(/ms$/),
      '"R-ratchet"',
    ]);
    expect(paid?.slice(0, 3)).toEqual(["paid", "wait", "pending"]);
    const { steps } = await pawlJson<{ steps: Step[] }>(["steps", runId], { url });
    expect(steps.map(({ name, status }) => [name, status])).toEqual([
      ["reserve", "completed"],
      ["paid", "pending"],
    ]);
  });

  it("limits sets and lists", async () => {
    expect((await pawl(["limits", "list"], { url })).stdout).toBe("no limits\n");
    const set = await pawl(
      ["limits", "set", "stripe", "--allowed", "100", "--period", "1s", "--burst", "200"],
      { url },
    );
    expect(set).toEqual({ code: 0, stdout: "set the limit stripe\n", stderr: "" });
    const { limits } = await pawlJson<{ limits: Limit[] }>(["limits", "list"], { url });
    expect(limits).toEqual([{ name: "stripe", allowed: 100, periodMs: 1000, burst: 200, concurrent: null }]);
    expect((await pawl(["limits", "set", "gpu", "--concurrent", "3"], { url })).code).toBe(0);
    const listed = await pawl(["limits", "list"], { url });
    expect(listed.stdout).toMatch(/^gpu +- +- +- +3$/m);
    const missing = await pawl(["limits", "set", "stripe"], { url });
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain("add --allowed and --period, or --concurrent");
  });
});

describe("start options", () => {
  it("are flags of runs start; list, find, show and signal-all know tags and correlation keys", async () => {
    const labels = ["--tag", "customer=42", "--tag", "note=a=b", "--correlation-key", "order-42"];
    const start = ["runs", "start", "someday", "1", "--queue", "nobody", ...labels, "--deadline", "1h"];
    const { runId } = await pawlJson<{ runId: string }>(start, { url });
    const { runs } = await pawlJson<Page>(["runs", "list", "--tag", "customer=42", "--tag", "note=a=b"], {
      url,
    });
    expect(runs).toMatchObject([
      { runId, tags: { customer: "42", note: "a=b" }, correlationKey: "order-42" },
    ]);
    const table = await pawl(["runs", "find", "--correlation-key", "order-42"], { url });
    expect(table.stdout).toMatch(/TAGS.*\n.*customer=42 note=a=b/);
    const shown = await pawl(["runs", "show", runId], { url });
    expect(shown.stdout).toMatch(/correlation key\s+order-42\n\s*tags\s+customer=42 note=a=b/);
    expect(shown.stdout).toMatch(/deadline\s+\d{4}-/);
    const sent = await pawl(["runs", "signal-all", "order-42", "paid", '{"n":1}', "--name", "someday"], {
      url,
    });
    expect(sent.stdout).toBe(`delivered to 1 run: ${runId}\n`);
    const none = await pawl(["runs", "find"], { url });
    expect([none.code, none.stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining("runs.find takes one of"),
    ]);
  });

  it("debounce needs its key and its delay", async () => {
    const start = (...flags: string[]) => pawl(["runs", "start", "someday", "1", ...flags], { url });
    expect((await start("--debounce-key", "k")).stderr).toMatch(
      /needs both --debounce-key and --debounce-delay/,
    );
    const debounced = ["--debounce-key", "k", "--debounce-delay", "1h", "--queue", "nobody"];
    const first = await start(...debounced);
    const second = await start(...debounced);
    expect(first.stdout).toMatch(/^started run \d+/);
    expect(second.stdout).toBe(
      first.stdout.replace(/^started (run \d+)/, "$1 was started before; it is running"),
    );
    expect((await start("--tag", "nothing")).stderr).toMatch(/such as customer=42/);
  });
});
