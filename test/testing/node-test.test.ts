import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { root } from "../docs/pages.js";
import { runProgram } from "../docs/program.js";
import { until } from "../support/until.js";

// Test files as users of node:test have them, on the local Postgres that comes by itself.
const directory = realpathSync(mkdtempSync(join(tmpdir(), "pawl-node-test-")));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));

const file = (name: string): string => `
import assert from "node:assert/strict";
import { test } from "node:test";
import { workflow } from "pawl";
import { testPawl } from "pawl/testing";

for (const number of [1, 2, 3]) {
  test("${name} " + number, async () => {
    const trial = workflow({
      name: "trial",
      run: async ({ step }) => {
        await step.sleep("trial-period", "30d");
        return step.run("charge", () => number);
      },
    });
    const t = await testPawl({ definitions: [trial] });
    try {
      console.log("url " + t.url);
      const { runId } = await t.pawl.start(trial);
      await t.crash();
      await t.advance("30d");
      assert.equal(await t.pawl.result(runId), number);
    } finally {
      await t.close();
    }
  });
}
`;

describe("under node:test", () => {
  it(
    "files share one server, end by themselves, and leave no process behind",
    { timeout: 240_000 },
    async () => {
      const names = ["one", "other", "third"];
      for (const name of names) writeFileSync(join(directory, `${name}.test.mjs`), file(name));
      const { code, stdout, stderr } = await runProgram("--test", {
        cwd: directory,
        args: ["--test-concurrency=2", "--test-reporter=tap", ...names.map((name) => `${name}.test.mjs`)],
      });
      expect(code, stdout + stderr).toBe(0);
      expect(stdout).toMatch(/^# pass 9$/m);
      const sockets = new Set(
        [...stdout.matchAll(/url \S+host=(\S+)/g)].map(([, host = ""]) => decodeURIComponent(host)),
      );
      // One server, or, if one file ended long before the next began, another on the same data.
      expect(sockets.size).toBeLessThanOrEqual(names.length);
      for (const socket of sockets) await until("the server has ended", () => !isThere(socket));
    },
  );

  it(
    "a file that fails and closes nothing ends too, when its tests are over",
    { timeout: 120_000 },
    async () => {
      const text = `
import { after, test } from "node:test";
import { testPawl } from "pawl/testing";
const t = await testPawl();
after(() => t.close());
test("fails", async () => {
  console.log("url " + t.url);
  throw new Error("on purpose");
});
`;
      writeFileSync(join(directory, "failing.test.mjs"), text);
      const { code, stdout } = await runProgram("--test", { cwd: directory, args: ["failing.test.mjs"] });
      expect(code).toBe(1);
      const [, socket = ""] = /host=(\S+)/.exec(stdout) ?? [];
      await until("the server has ended", () => !isThere(decodeURIComponent(socket)));
    },
  );
});

function isThere(socketDirectory: string): boolean {
  try {
    realpathSync(socketDirectory);
    return true;
  } catch {
    return false;
  }
}
