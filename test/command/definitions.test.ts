import { connect, type Checked, serve, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { makeProject } from "../docs/program.js";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { pawl, pawlJson } from "./pawl.js";

const { url } = await testDatabase();
const client = connect(url);
afterAll(() => client.close());
const before = workflow({
  name: "order",
  run: async ({ step }) => {
    await step.run("reserve", () => 1);
    await step.waitForEvent("paid");
  },
});
const worker = serve([before], { url });
const { runId } = await client.start(before);
await until("it waits", async () => (await client.runs.get(runId)).phase === "awaiting_signal");
await worker.stop();

const order = (steps: string): string => `
import { NonRetryable, StepFailed, workflow, type WorkflowContext } from "pawl";
enum Phase { Begun = 1 }
export const order = workflow({
  name: "order",
  run: async ({ step }: WorkflowContext) => {
    const phase: Phase = Phase.Begun;
    ${steps}
  },
});
export default { order };
`;
const same = order('await step.run("reserve", () => phase); await step.waitForEvent("paid");');
const changed = order('await step.sleep("reserve", "1s"); await step.waitForEvent("paid");');

const project = makeProject({
  "same.ts": same,
  "changed.ts": changed,
  "syntax.ts": 'import { job } from "pawl";\nexport const a = job({ name: "a", run: () => 1 );\n',
  "throws.ts": 'import { job } from "pawl";\n\nexport const a = job({ name: "No Name", run: () => 1 });\n',
  "imports.ts": 'export * from "./syntax.js";\n',
  "missing.ts": 'export * from "./nowhere.js";\n',
  "nothing.ts": "export const a = { kind: 1 };\n",
  "plain.js": 'import { job } from "pawl";\nexport default [job({ name: "order", run: () => 1 })];\n',
});
const commonjs = makeProject({
  "package.json": '{ "type": "commonjs" }',
  "same.ts": same,
  "changed.ts": changed,
});

describe("pawl check", () => {
  it("ends with 0 when the open runs would go on", async () => {
    expect(await pawl(["check", "same.ts"], { url, cwd: project })).toEqual({
      code: 0,
      stdout: "1 open run: all would continue\n",
      stderr: "",
    });
  });

  it("ends with 1 when some would break, and says why", async () => {
    const { code, stdout } = await pawl(["check", "changed.ts"], { url, cwd: project });
    expect(code).toBe(1);
    const [head, row, sum] = stdout.split("\n").map((line) => line.split(/\s{2,}/));
    expect(head).toEqual(["RUN", "NAME", "REASON", "BECAUSE"]);
    expect(row).toEqual([runId, "order@1", "changed_step", expect.stringContaining('"reserve"') as string]);
    expect(sum).toEqual(["1 open run: 1 would break"]);
    const json = await pawlJson<Checked>(["check", "changed.ts"], { url, cwd: project });
    expect(json).toMatchObject({ runs: 1, broken: [{ runId, reason: "changed_step" }] });
  });

  it("takes TypeScript in a CommonJS package, and plain JavaScript", async () => {
    expect((await pawl(["check", "same.ts"], { url, cwd: commonjs })).code).toBe(0);
    expect((await pawl(["check", "changed.ts"], { url, cwd: commonjs })).code).toBe(1);
    expect((await pawl(["check", "plain.js"], { url, cwd: project })).stdout).toContain("1 open run");
  });

  it.each([
    ["syntax.ts", 'syntax.ts:2:48: Expected "}" but found ")"'],
    ["imports.ts", 'syntax.ts:2:48: Expected "}" but found ")"'],
    [
      "throws.ts",
      'throws.ts:3:18: the name of a definition must be 1 to 48 characters of a-z, 0-9, _ and -, the first a letter or digit, not "No Name"',
    ],
    ["missing.ts", /^missing\.ts: Cannot find module '.*nowhere\.js' imported from .*missing\.ts$/],
    [
      "nothing.ts",
      /^nothing\.ts exports no definition; export what workflow\(…\), job\(…\) or machine\(…\) returns/,
    ],
  ])("%s is refused in one line with the place", async (file, text) => {
    const { code, stdout, stderr } = await pawl(["check", file], { url, cwd: project });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^pawl: [^\n]*\n$/);
    const line = stderr.slice("pawl: ".length, -1);
    if (typeof text === "string") expect(line).toBe(text);
    else expect(line).toMatch(text);
  });
});
