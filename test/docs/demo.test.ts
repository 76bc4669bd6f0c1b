import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.js";
import { startProgram } from "./program.js";

const require = createRequire(import.meta.url);
const demo = require.resolve("@pawl/examples/demo");

describe("the demo", () => {
  it(
    "tells the story of a run that survives its worker, and leaves nothing behind",
    { timeout: 120_000 },
    async () => {
      const program = startProgram(demo, { args: ["--stay"] });
      const linked = (): string | undefined => /dashboard until .*: (http\S+)$/m.exec(program.stdout())?.[1];
      const link = await until("it ends with a link", linked, 90_000);
      const page = await fetch(link, { headers: { accept: "text/html" } });
      expect(await page.text()).toContain('<div id="app">');
      const run = await fetch(link.replace("/runs/", "/v1/runs/"));
      expect(await run.json()).toMatchObject({ name: "order", status: "completed" });
      program.process.kill("SIGINT");
      const { code, stdout, stderr } = await program.ended;
      expect(stderr).toBe("");
      expect(code).toBe(0);
      expectInOrder(stdout, [
        /A throw-away server runs as process \d+/,
        /worker A {2}serves "order" as process \d+/,
        /client {4}started run \d+/,
        /worker A {2}executes reserve +attempt 0 +committed: nothing yet/,
        /worker A {2}executes charge +attempt 0 +committed: reservation$/m,
        /kill -9 \d+/,
        /phase +executing/,
        /step +charge/,
        /state +\{.*"reservation".*\}/,
        /worker B {2}serves "order" as process \d+/,
        /\d\.\d s after the kill/,
        /worker B {2}executes charge +attempt 1 +committed: reservation$/m,
        /worker B {2}executes pack +attempt 0 +committed: reservation, payment$/m,
        /worker B {2}executes ship +attempt 0 +committed: reservation, payment, parcel$/m,
        /worker B {2}stopped gracefully/,
        /Run \d+ is completed/,
        /reserve +1 +0$/m,
        /charge +1 +1 /,
        /pack +0 +1$/m,
        /ship +0 +1$/m,
        /Payments taken: 1$/m,
      ]);
      await untilGone(stdout);
    },
  );

  it("ends at once when it is interrupted, and leaves nothing behind", async () => {
    const program = startProgram(demo);
    await until("a step is executed", () => program.stdout().includes("executes reserve"), 30_000);
    program.process.kill("SIGINT");
    const { code, stdout, stderr } = await program.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("interrupted by SIGINT");
    await untilGone(stdout);
  });

  it("leaves nothing behind when it is killed", async () => {
    const program = startProgram(demo);
    await until("a step is executed", () => program.stdout().includes("executes reserve"), 30_000);
    program.process.kill("SIGKILL");
    const { stdout } = await program.ended;
    await untilGone(stdout);
  });
});

function expectInOrder(text: string, lines: readonly RegExp[]): void {
  let rest = text;
  for (const line of lines) {
    const found = line.exec(rest);
    expect(found, `${line} in:\n${rest}`).not.toBeNull();
    rest = rest.slice(found!.index + found![0].length);
  }
}

/** Waits until none of the processes that the demo named is alive. */
async function untilGone(stdout: string): Promise<void> {
  const pids = [...stdout.matchAll(/as process (\d+)/g)].map(([, pid]) => Number(pid));
  expect(pids.length).toBeGreaterThanOrEqual(2);
  await until("the processes of the demo are gone", () => !pids.some(isAlive));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
