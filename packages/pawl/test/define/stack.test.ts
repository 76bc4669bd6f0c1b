/** The stacks of recorded errors: the frames that are kept, and the bound. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeError, type ErrorRecord, errorLines } from "../../dist/values/error-record.js";

/** An error with this message and these frames. */
function errorWith(frames: readonly string[], message = "boom", cause?: unknown): Error {
  const error = new Error(message, { cause });
  error.stack = [`Error: ${message}`, ...frames.map((frame) => `    at ${frame}`)].join("\n");
  return error;
}

const own = new URL("../../dist/run/execute-job.js", import.meta.url);
const frames = (record: ErrorRecord): string[] => (record.stack ?? "").split("\n").slice(1);
const encoded = (text: string): number => Buffer.byteLength(JSON.stringify(text));

describe("the stack of a recorded error", () => {
  test("has the frames of the user's code, and none of Pawl or of Node's internals", () => {
    const record = describeError(
      errorWith([
        "charge (/app/src/orders.ts:12:9)",
        "Object.run (file:///app/src/orders.ts:4:1)",
        `attemptJob (${own.href}:53:30)`,
        `async executeJob (${own.pathname}:30:24)`,
        `execute (${new URL("../../src/worker/execute.ts", import.meta.url).href}:20:7)`,
        "process.processTicksAndRejections (node:internal/process/task_queues:105:5)",
        "async query (/app/node_modules/pg/lib/client.js:1:1)",
      ]),
    );
    expect(record.stack).toBe(
      [
        "Error: boom",
        "    at charge (/app/src/orders.ts:12:9)",
        "    at Object.run (file:///app/src/orders.ts:4:1)",
        "    at async query (/app/node_modules/pg/lib/client.js:1:1)",
      ].join("\n"),
    );
  });

  test("is missing if only Pawl's frames would be left, or the error has none", () => {
    expect(describeError(errorWith([`attemptJob (${own.href}:53:30)`]))).not.toHaveProperty("stack");
    expect(describeError(Object.assign(new Error("x"), { stack: undefined }))).not.toHaveProperty("stack");
    expect(describeError("a text")).not.toHaveProperty("stack");
  });

  test("begins with name and message, as they are when it is recorded", () => {
    const error = errorWith(["a (/app/a.js:1:1)"], "first\n    at nowhere (/no/frame.js:1:1)");
    error.name = "Renamed";
    expect(describeError(error).stack).toBe("Renamed: first\n    at a (/app/a.js:1:1)");
  });

  test("is at most 8 KiB, cut between lines", () => {
    const long = Array.from({ length: 500 }, (_, n) => `step${n} (/app/${"d".repeat(60)}/${n}.ts:${n}:1)`);
    const record = describeError(errorWith(long));
    expect(encoded(record.stack!)).toBeLessThanOrEqual(8192);
    expect(encoded(record.stack!)).toBeGreaterThan(8000);
    expect(frames(record)).toEqual(long.slice(0, frames(record).length).map((frame) => `    at ${frame}`));
  });

  test("shares the 8 KiB with the stacks of its causes, each of which keeps its first frames", () => {
    const long = (name: string): string[] =>
      Array.from({ length: 300 }, (_, n) => `${name}${n} (/app/${"d".repeat(60)}/${n}.ts:${n}:1)`);
    const record = describeError(
      errorWith(
        long("outer"),
        "a",
        errorWith(long("middle"), "b", errorWith(["root (/app/root.ts:1:1)"], "c")),
      ),
    );
    const { cause } = record;
    expect(frames(record)[0]).toContain("outer0");
    expect(frames(cause!)[0]).toContain("middle0");
    expect(frames(cause!.cause!)).toEqual(["    at root (/app/root.ts:1:1)"]);
    const bytes = [record, cause!, cause!.cause!].reduce((sum, { stack }) => sum + encoded(stack!), 0);
    expect(bytes).toBeLessThanOrEqual(8192);
  });

  test("of a stored record that becomes the cause of another error is kept", () => {
    const stored = describeError(errorWith(["a (/app/a.js:1:1)"]));
    expect(describeError(new Error("outer", { cause: stored })).cause?.stack).toBe(stored.stack);
  });
});

test("a stack names the sources when Node.js has source maps on, and the compiled file when not", () => {
  const directory = mkdtempSync(join(tmpdir(), "pawl-stack-"));
  try {
    const lines = [
      `import { describeError } from "${new URL("../../dist/values/error-record.js", import.meta.url).href}";`,
      'const charge = () => { throw new Error("no card"); };',
      "try { charge(); } catch (error) { console.log(describeError(error).stack); }",
    ];
    // The second line comes from the fourth line of charge.ts.
    const map = { version: 3, sources: ["charge.ts"], names: [], mappings: "AAAA;AAGA;AACA" };
    const url = `data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString("base64")}`;
    const file = join(directory, "charge.mjs");
    writeFileSync(file, [...lines, `//# sourceMappingURL=${url}`].join("\n"));
    const run = (...flags: string[]): string =>
      spawnSync(process.execPath, [...flags, file], { encoding: "utf8" }).stdout;
    expect(run("--enable-source-maps")).toMatch(/^Error: no card\n {4}at charge \(.*charge\.ts:4:/);
    expect(run()).toMatch(/^Error: no card\n {4}at charge \(.*charge\.mjs:2:/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("an error is printed with its code, its frames and its causes", () => {
  const cause = errorWith(["root (/app/root.ts:1:1)"], "deep");
  const error = Object.assign(errorWith(["a (/app/a.js:1:1)"], "boom", cause), { code: "E_BOOM" });
  expect(errorLines(describeError(error))).toEqual([
    "Error (E_BOOM): boom",
    "    at a (/app/a.js:1:1)",
    "caused by Error: deep",
    "    at root (/app/root.ts:1:1)",
  ]);
});
