import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "pawl";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { makeProject, type Program } from "../docs/program.js";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { pawl, startPawl } from "./pawl.js";

const { url, sql } = await testDatabase();
const client = connect(url);
afterAll(() => client.close());
let started: Program | undefined;
afterEach(() => started?.process.kill("SIGKILL"));

const longMs = 60_000;
const commonjs = { "package.json": '{ "type": "commonjs" }' };
const stubborn = `
import { job, NonRetryable } from "pawl";
import { readFileSync } from "node:fs";
export const wait = job({
  name: "wait",
  run: async () => { while (readFileSync("gate", "utf8") !== "open") await new Promise((done) => setTimeout(done, 20)); return "done"; },
});
export const die = job({ name: "die", run: () => { throw new NonRetryable("at once"); } });
export const crash = job({ name: "crash", maxAttempts: 1, run: () => process.exit(7) });
`;

function startDev(cwd: string, ...args: string[]): Program {
  started = startPawl(["dev", "--watch", "definitions.ts", "--port", "0", ...args], { cwd, url });
  return started;
}
const printed = (dev: Program, text: string): Promise<boolean> =>
  until(`it prints ${text}`, () => dev.stdout().includes(text), longMs);

describe("pawl dev", () => {
  it("lets a running step end at the first Ctrl-C", async () => {
    const project = makeProject({ ...commonjs, "definitions.ts": stubborn, gate: "shut" });
    const dev = startDev(project);
    await printed(dev, "worker    serves crash@1, die@1, wait@1 of definitions.ts\n");
    const { runId } = await client.start("wait");
    await until("it executes", async () => (await client.runs.get(runId)).phase === "executing");
    dev.process.kill("SIGINT");
    await printed(dev, "stopping; Ctrl-C again stops at once\n");
    writeFileSync(join(project, "gate"), "open");
    expect((await dev.ended).code).toBe(0);
    expect(await client.result(runId)).toBe("done");
  });

  it("ends at once at the second, and its worker with it", async () => {
    const project = makeProject({ ...commonjs, "definitions.ts": stubborn, gate: "shut" });
    const dev = startDev(project);
    await printed(dev, "serves crash@1");
    const { runId } = await client.start("wait");
    await until("it executes", async () => (await client.runs.get(runId)).phase === "executing");
    dev.process.kill("SIGINT");
    await printed(dev, "stopping");
    dev.process.kill("SIGINT");
    expect((await dev.ended).code).toBe(130);
    await until("its worker's connections are closed", async () => {
      const rows = await sql(
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'pawl' and state <> 'idle'",
      );
      return rows.length === 0;
    });
    await client.runs.cancel(runId);
  });

  it(
    "knows the errors of a CommonJS file, and starts a crashed worker again",
    { timeout: 120_000 },
    async () => {
      const project = makeProject({ ...commonjs, "definitions.ts": stubborn, gate: "open" });
      const dev = startDev(project);
      await printed(dev, "serves crash@1");
      // With two copies of the library it would be an ordinary error, and be tried again.
      const failed = await pawl(["runs", "start", "die", "--wait"], { url });
      expect(failed.stderr).toMatch(/^pawl: run \d+ failed: at once\n$/);
      await client.start("crash");
      await printed(dev, "worker    ended by code 7; starting again\n");
      const again = await pawl(["runs", "start", "wait", "--wait"], { url });
      expect(again.stdout).toBe('"done"\n');
      dev.process.kill("SIGINT");
      expect((await dev.ended).code).toBe(0);
    },
  );

  it("begins with a broken file, too, and serves it once it is right", async () => {
    const project = makeProject({ "definitions.ts": "export const nothing = 1;\n" });
    const dev = startDev(project);
    await printed(dev, "worker    definitions.ts exports no definition;");
    await printed(dev, "nothing is served until you fix this\n");
    writeFileSync(join(project, "definitions.ts"), stubborn);
    await printed(dev, "worker    serves crash@1, die@1, wait@1 of definitions.ts\n");
    dev.process.kill("SIGINT");
    expect((await dev.ended).code).toBe(0);
  });
});
