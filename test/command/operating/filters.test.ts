import { child, connect, job, machine, NonRetryable, type Page, type Run, serve, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { createProgram } from "../../../packages/server/dist/command/program.js";
import { openShell } from "../../../packages/server/dist/command/terminal/shell.js";
import { listQuery } from "../../../packages/server/dist/routes/run-schemas.js";
import { testDatabase } from "../../support/database.js";
import { pawl, pawlJson } from "../pawl.js";

const { url, sql } = await testDatabase();
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const broken = job({
  name: "broken",
  run: () => {
    throw new NonRetryable("no", { cause: new TypeError("deeper") });
  },
});
const flaky = workflow({
  name: "flaky",
  run: ({ step }) =>
    step.run(
      "try",
      ({ attempt }) => {
        if (attempt === 0) throw new Error("once");
        return attempt;
      },
      { retry: { backoff: { base: 1 } } },
    ),
});
const leaf = job({ name: "leaf", run: () => 1 });
const tree = machine({
  name: "tree",
  steps: {
    start: (ctx) => ctx.spawn("gather", [child(leaf, null)], {}),
    gather: (ctx) => ctx.done(ctx.children.length),
  },
});
const waiting = workflow({ name: "waiting", run: ({ step }) => step.waitForEvent("go") });

const worker = serve([broken, flaky, leaf, tree, waiting], { url, logger: silent });
const client = connect(url);
afterAll(() => client.close());
const started = {
  broken: await client.start(broken, null),
  flaky: await client.start(flaky, null),
  tree: await client.start(tree, {}),
};
await client.result(started.broken.runId).catch(() => {});
await client.result(started.flaky.runId);
await client.result(started.tree.runId);
await worker.stop();
const idle = await client.start(leaf, null, { queue: "slow" });
const stopped = await client.start(leaf, null);
await client.runs.pause(stopped.runId);
await client.queues.pause("slow");

const list = async (...args: string[]): Promise<Run[]> =>
  (await pawlJson<Page>(["runs", "list", ...args], { url })).runs;
const namesOf = (runs: readonly Run[]): string[] => runs.map(({ name }) => name).toSorted();

describe("pawl runs list", () => {
  it("has an option for each filter of the API", () => {
    const runs = createProgram({ shell: openShell(process), code: 0 }).commands.find(
      (one) => one.name() === "runs",
    );
    const options = runs?.commands
      .find((one) => one.name() === "list")
      ?.options.map((one) => one.attributeName());
    const called: Record<string, string> = { parentId: "parent" };
    const filters = Object.keys(listQuery.properties).map((name) => called[name] ?? name);
    expect(options).toEqual(expect.arrayContaining(["name", "tag", "input", ...filters]));
  });

  it("filters by kind, error code, parent and queue", async () => {
    expect(namesOf(await list("--kind", "workflow"))).toEqual(["flaky"]);
    expect(namesOf(await list("--error", "NonRetryable"))).toEqual(["broken"]);
    const children = await list("--parent", started.tree.runId);
    expect(children.map(({ name, parentId }) => [name, parentId])).toEqual([["leaf", started.tree.runId]]);
    expect((await list("--queue", "slow")).map(({ runId }) => runId)).toEqual([idle.runId]);
  });

  it("prints words as STATUS that --status finds the same runs by", async () => {
    const { stdout } = await pawl(["runs", "list"], { url });
    const rows = stdout.trim().split("\n").slice(1);
    const printed = rows.map((row) => /^(\d+) +\S+ +(\w+)( \(\w+ paused\))?/.exec(row) ?? []);
    const words = new Map(printed.map(([, runId = "", word = ""]) => [runId, word]));
    expect(words.get(stopped.runId)).toBe("paused");
    expect(words.get(idle.runId)).toBe("runnable");
    expect(stdout).toContain("runnable (queue paused)");
    for (const [runId, word] of words) {
      const found = await list("--status", word);
      expect(
        found.map((run) => run.runId),
        word,
      ).toContain(runId);
    }
  });

  it("refuses two phases", async () => {
    expect(await pawl(["runs", "list", "--status", "executing", "--phase", "done"], { url })).toEqual({
      code: 2,
      stdout: "",
      stderr: "pawl: --status executing is a phase, and so is --phase done: leave out one of them\n",
    });
  });
});

it("the first attempt is attempt 1", async () => {
  const { stdout } = await pawl(["steps", started.flaky.runId], { url });
  expect(stdout).toMatch(/^try +run +completed +2 /m);
  await sql("update runs set attempt = 1 where id = $1", [idle.runId]);
  expect((await pawl(["runs", "show", idle.runId], { url })).stdout).toMatch(/^attempt +2$/m);
  // The API counts the attempts before this one.
  expect((await pawlJson<Run>(["runs", "show", idle.runId], { url })).attempt).toBe(1);
});
