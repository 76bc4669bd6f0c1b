import { connect, job, type Run } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { pawl, pawlJson } from "./pawl.js";

const { url } = await testDatabase();
const client = connect(url);
afterAll(() => client.close());
const double = job({ name: "double", run: (_ctx, n: number) => n * 2 });
const said = async (...words: string[]): Promise<string> => (await pawl(words, { url })).stdout.trim();

describe("the pauses of the command", () => {
  it("runs pause and resume, and list --paused", async () => {
    const { runId } = await client.start(double, 1, { delay: "1h" });
    expect(await said("runs", "pause", runId, "--reason", "wrong address")).toBe(`run ${runId} is paused`);
    expect(await said("runs", "pause", runId)).toBe(`run ${runId} is already paused`);
    const { runs } = await pawlJson<{ runs: Run[] }>(["runs", "list", "--paused"], { url });
    expect(runs).toMatchObject([{ runId, paused: { scope: "run", reason: "wrong address" } }]);
    expect(await said("runs", "why", runId)).toMatch(
      new RegExp(`^run ${runId} is paused, by .+@.+ since .+: wrong address; .*pawl runs resume ${runId}`),
    );
    expect(await said("runs", "resume", runId)).toBe(`run ${runId} is resumed`);
    expect(await said("runs", "resume", runId)).toBe(`run ${runId} is not paused: nothing to do`);
  });

  it("queues and definitions pause, resume and paused; doctor notes them with their age", async () => {
    expect(await said("queues", "pause", "mail", "--by", "alice")).toBe("queue mail is paused");
    expect(await said("definitions", "pause", "double", "--version", "2")).toBe(
      "definition double@2 is paused",
    );
    expect(await said("queues", "paused")).toMatch(/mail +alice/);
    expect(await said("definitions", "paused")).toContain("double@2");
    const doctor = await said("doctor");
    expect(doctor).toMatch(/note +pauses +queue "mail" is paused by alice for .+/);
    expect(doctor).toContain("pawl definitions resume double --version 2");
    expect(await said("queues", "resume", "mail")).toBe("queue mail is resumed");
    expect(await said("definitions", "resume", "double")).toBe("definition double is resumed");
    expect(await said("queues", "paused")).toBe("no paused queues");
  });
});
