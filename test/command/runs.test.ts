import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, job, NonRetryable, serve, signal, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { makeProject } from "../docs/program.js";
import { testDatabase } from "../support/database.js";
import { pawl, pawlJson } from "./pawl.js";

const { url } = await testDatabase();
const directory = makeProject({});
const double = job({
  name: "double",
  run: (_ctx, n: number) => {
    if (n < 0) throw new NonRetryable("it is negative: \u001B[31m\u0007");
    return n * 2;
  },
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
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const worker = serve([double, order], { url, logger: silent });
await worker.ready;
const client = connect(url);
afterAll(async () => {
  await worker.stop();
  await client.close();
});

describe("pawl runs start", () => {
  it("starts a run, tells its id, and starts none twice", async () => {
    const args = ["runs", "start", "double", "21", "--idempotency-key", "a"];
    const first = await pawl(args, { url });
    expect(first).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^started run \d+\n$/) as string,
      stderr: "",
    });
    const [runId = ""] = /\d+/.exec(first.stdout) ?? [];
    expect(await client.result(runId)).toBe(42);
    const again = await pawl(args, { url });
    expect(again.stdout).toBe(`run ${runId} was started before; it is completed\n`);
  });

  it("warns when nobody has registered the name, and suggests a similar one", async () => {
    const typo = await pawl(["runs", "start", "duoble", "1"], { url });
    const [runId = ""] = /\d+/.exec(typo.stdout) ?? [];
    expect(typo).toEqual({
      code: 0,
      stdout: `started run ${runId}\n`,
      stderr: `pawl: no worker has ever registered "duoble", so run ${runId} waits for one; did you mean "double"?\n`,
    });
    const json = await pawlJson<object>(["runs", "start", "nothing-like-it"], { url });
    expect(json).toMatchObject({ created: true, served: false });
    expect(json).not.toHaveProperty("nearest");
  });

  it("waits for the output, with input from an argument, a file or standard input", async () => {
    writeFileSync(join(directory, "n.json"), "4");
    const options = { url, cwd: directory };
    const outputs = await Promise.all([
      pawl(["runs", "start", "double", "3", "--wait"], options),
      pawl(["runs", "start", "double", "@n.json", "--wait", "--timeout", "30s"], options),
      pawl(["runs", "start", "double", "-", "--wait"], { ...options, input: "5\n" }),
    ]);
    expect(outputs.map(({ code, stdout }) => [code, stdout])).toEqual([
      [0, "6\n"],
      [0, "8\n"],
      [0, "10\n"],
    ]);
  });

  it("ends with 1 when the run fails, and shows no control characters", async () => {
    const { code, stdout, stderr } = await pawl(["runs", "start", "double", "-1", "--wait"], { url });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^pawl: run \d+ failed: it is negative: \\u001b\[31m\\u0007\n$/);
    const json = await pawlJson<object>(["runs", "start", "double", "--wait", "-"], { url, input: "-1" });
    expect(json).toMatchObject({ created: true, status: "failed", error: { code: "NonRetryable" } });
  });

  it("ends with 1 when the time is over, and the run goes on", async () => {
    const { code, stderr } = await pawl(
      ["runs", "start", "order", '{"item":"a"}', "--wait", "--timeout", "10ms"],
      {
        url,
      },
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/^pawl: run \d+ .*10 ms.*\n$/);
  });

  it("takes the options of start, and refuses wrong ones as the library does", async () => {
    const args = [
      "--queue",
      "slow",
      "--priority=-5",
      "--delay",
      "1h",
      "--partition-key",
      "k",
      "--retention",
      "1d",
    ];
    const started = await pawlJson<{ runId: string }>(["runs", "start", "double", "1", ...args], { url });
    expect(started).toEqual({ runId: expect.any(String) as string, created: true, status: "running" });
    expect(await client.runs.get(started.runId)).toMatchObject({
      queue: "slow",
      priority: -5,
      phase: "runnable",
    });
    const wrong = await pawl(["runs", "start", "double", "1", "--delay", "soon"], { url });
    expect(wrong).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^pawl: delay must be a duration.*\n$/) as string,
    });
  });
});
