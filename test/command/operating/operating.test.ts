import { type Action, type BulkOperation, type BulkPreview, connect, job, type Run, serve } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { until } from "../../support/until.js";
import { pawl, pawlJson } from "../pawl.js";

const { url } = await testDatabase();
const triple = job({
  name: "triple",
  maxAttempts: 1,
  run: (_ctx, n: number) => {
    if (n < 0) throw new Error("too small");
    return n * 3;
  },
});
const worker = serve([triple], { url, reapInterval: "100ms" });
await worker.ready;
const client = connect(url);
afterAll(async () => {
  await worker.stop();
  await client.close();
});

async function failedRun(): Promise<string> {
  const { runId } = await client.start(triple, -1);
  await until("it has failed", async () => (await client.runs.get(runId)).status === "failed");
  return runId;
}

describe("pawl runs rerun", () => {
  it("runs a failed run again, with another input", async () => {
    const runId = await failedRun();
    const { code, stdout } = await pawl(["runs", "rerun", runId, "--input", "5"], { url });
    expect(code).toBe(0);
    const [, again] = /^run \d+ runs again as run (\d+)\n$/.exec(stdout)!;
    expect(await client.result(again!)).toBe(15);
    const json = await pawlJson<{ runId: string }>(["runs", "rerun", runId, "--input", "6"], { url });
    expect(await client.result(json.runId)).toBe(18);
    expect(await pawlJson<Run>(["runs", "show", runId], { url })).toMatchObject({ rerunAs: json.runId });
  });

  it("says why a run cannot run again", async () => {
    const { code, stderr } = await pawl(["runs", "rerun", await failedRun(), "--from", "one"], { url });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/is a job, which has no steps/);
  });
});

describe("pawl runs bulk, pawl bulk and pawl actions", () => {
  it("count in a dry run, redrive, follow and log", async () => {
    const runId = await failedRun();
    const filter = ["--name", "triple", "--status", "failed"];
    const dry = await pawl(["runs", "bulk", "rerun", ...filter, "--dry-run"], { url });
    expect(dry.stdout).toMatch(/^dry run: rerun would concern \d+ runs?\n {2}\d+ triple failed\n/);
    const preview = await pawlJson<BulkPreview>(["runs", "bulk", "rerun", ...filter, "--dry-run"], { url });
    expect(preview.runs.map((run) => run.runId)).toContain(runId);
    const refused = await pawl(["runs", "bulk", "rerun"], { url });
    expect(refused.stderr).toMatch(/needs a filter, such as --name .* pass --all/);
    const { id } = await pawlJson<BulkOperation>(["runs", "bulk", "rerun", ...filter], { url });
    await until("it is over", async () => (await client.bulk.get(id)).completedAt !== null);
    const shown = await pawl(["bulk", "show", id], { url });
    expect(shown.stdout).toMatch(/OPERATION +ACTION +STATUS/);
    expect(shown.stdout).toMatch(new RegExp(`${id} +rerun +completed +${preview.count} of ${preview.count}`));
    expect((await pawl(["bulk", "list"], { url })).stdout).toContain("rerun");
    expect((await pawl(["bulk", "stop", id], { url })).stdout).toBe(`operation ${id} is completed\n`);
    const { actions } = await pawlJson<{ actions: Action[] }>(["actions", "--target", id], { url });
    expect(actions).toMatchObject([{ who: "local", from: "cli", action: "runs.bulk" }]);
    expect((await pawl(["actions"], { url })).stdout).toMatch(/WHEN +WHO +FROM +ACTION +TARGET +DETAIL/);
  });
});
