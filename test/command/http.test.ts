import { createServer } from "@pawl/server";
import { job, type Page, serve } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { pawl, pawlJson } from "./pawl.js";

const database = (await testDatabase()).url;
const server = await createServer({
  database,
  port: 0,
  tokens: ["ops:read+write+admin:the-secret-of-operators", "eyes:read:the-secret-of-the-eyes"],
});
const url = await server.listen();
const double = job({ name: "double", run: (_ctx, n: number) => n * 2 });
const worker = serve([double], { url: database });
await worker.ready;
afterAll(async () => {
  await worker.stop();
  await server.close();
});
const ops = { url, env: { PAWL_TOKEN: "the-secret-of-operators" } };

describe("over HTTP", () => {
  it("commands work as they do on the database", async () => {
    const started = await pawl(["runs", "start", "double", "21", "--wait"], ops);
    expect(started).toEqual({ code: 0, stdout: "42\n", stderr: "" });
    const { runs } = await pawlJson<Page>(["runs", "list", "--token", "the-secret-of-the-eyes"], { url });
    expect(runs.map(({ name, status, output }) => [name, status, output])).toEqual([
      ["double", "completed", 42],
    ]);
    const runId = runs[0]?.runId ?? "";
    expect((await pawl(["runs", "show", runId], ops)).stdout).toContain("output      42\n");
    expect((await pawl(["runs", "tail", runId], ops)).stdout).toMatch(/double@1 completed after .*: 42\n$/);
    expect((await pawl(["runs", "why", runId], ops)).stdout).toMatch(/^run \d+ has ended: completed/);
    expect((await pawl(["limits", "set", "a", "--allowed", "1", "--period", "1s"], ops)).code).toBe(0);
    expect(await pawl(["runs", "show", "1"], ops)).toMatchObject({
      code: 1,
      stderr: 'pawl: there is no run "1"\n',
    });
  });

  it("a token that is missing, wrong or not enough is told in one line", async () => {
    const missing = await pawl(["runs", "list"], { url });
    expect([missing.code, missing.stdout]).toEqual([1, ""]);
    expect(missing.stderr).toMatch(/^pawl: .* \(give --token, or set PAWL_TOKEN\)\n$/);
    const wrong = await pawl(["runs", "list", "--token", "nothing"], { url });
    expect(wrong.stderr).toMatch(/^pawl: .* \(give --token, or set PAWL_TOKEN\)\n$/);
    const forbidden = await pawl(["runs", "start", "double", "1", "--token", "the-secret-of-the-eyes"], {
      url,
    });
    expect(forbidden.code).toBe(1);
    expect(forbidden.stderr).toMatch(/^pawl: .* lacks the scope start, which write and admin include\n$/);
  });

  it("a server that is not there is told in one line", async () => {
    const { code, stderr } = await pawl(["runs", "list"], { url: "http://127.0.0.1:1" });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^pawl: .*127\.0\.0\.1:1.*\n$/);
  });

  it("what needs the database itself says so", async () => {
    for (const args of [["migrate"], ["doctor"], ["server"]]) {
      const { code, stderr } = await pawl(args, ops);
      expect([code, stderr]).toEqual([2, expect.stringMatching(/^pawl: .*postgres:\/\/.*\n$/)]);
    }
  });
});
