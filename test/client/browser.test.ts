import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { job, machine, serve } from "pawl";
import { afterAll, expect, it } from "vitest";
import { root } from "../docs/pages.js";
import { requireBuild } from "../support/built.js";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { testServer } from "../support/server.js";

requireBuild();
const { url: database } = await testDatabase();
const { url } = await testServer({ database, logger: silent });

/** The package, and nothing beside it that could be imported. */
const alone = mkdtempSync(join(tmpdir(), "pawl-client-"));
cpSync(join(root, "packages/pawl/dist"), join(alone, "dist"), { recursive: true });
writeFileSync(join(alone, "package.json"), JSON.stringify({ type: "module" }));
afterAll(() => rmSync(alone, { recursive: true }));

/** Loads modules into a context that has what browsers have, and nothing else. */
const loader = `
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import vm from "node:vm";
const globals = { fetch, URL, URLSearchParams, AbortController, TextEncoder, TextDecoder, setTimeout, clearTimeout, btoa, atob, performance, console };
const context = vm.createContext(globals);
const modules = new Map();
const load = (file) => {
  if (!modules.has(file)) modules.set(file, new vm.SourceTextModule(readFileSync(file, "utf8"), { context, identifier: file }));
  return modules.get(file);
};
const link = (specifier, from) => {
  if (!specifier.startsWith(".")) throw new Error("there is no " + specifier + " here, which " + from.identifier + " wants");
  return load(join(dirname(from.identifier), specifier));
};
const program = load(join(import.meta.dirname, "program.js"));
await program.link(link);
await program.evaluate();
`;

const program = `
import { connect, PawlError } from "./dist/client.js";
const lacking = [typeof Buffer, typeof process, typeof setImmediate, typeof require];
const pawl = connect(${JSON.stringify(url)});
const told = (call) => call.then((value) => value, (error) => error);
const kindOf = (error) => [error instanceof PawlError, error.constructor.name, error.code, error.message];
const started = await Promise.all(Array.from({ length: 20 }, (_, n) => pawl.start("double", { n, text: "ü" })));
const doubled = await Promise.all(started.map(({ runId }) => pawl.result(runId)));
const keyed = await pawl.start("double", { n: 1 }, { uniqueKey: new Uint8Array([0, 255]), idempotencyKey: "schlüssel" });
const again = await pawl.start("double", { n: 1 }, { idempotencyKey: "schlüssel" });
const parked = await pawl.start("park", {});
const early = await pawl.result(parked.runId, { timeout: 1 }).catch((error) => error.code);
await pawl.signal(parked.runId, "go", { by: "browser" }, { dedupKey: "once ü" });
const gone = await pawl.result(parked.runId);
const failed = await pawl.start("fail", null);
const failure = await told(pawl.result(failed.runId));
const page = await pawl.runs.list({ name: "double", limit: 5 });
const rest = await pawl.runs.list({ name: "double", limit: 5, cursor: page.cursor });
await pawl.limits.set("stripe", { allowed: 5, period: "1s" });
let within;
try { pawl.within({}); } catch (error) { within = kindOf(error); }
const run = await pawl.runs.get(parked.runId);
console.log(JSON.stringify({
  lacking, doubled, early, gone,
  same: keyed.runId === again.runId && !again.created,
  failure: [...kindOf(failure).slice(0, 3), failure.runId === failed.runId, failure.error],
  pages: [page.runs.length, rest.runs.length, rest.runs[0].runId !== page.runs[0].runId],
  limits: await pawl.limits.list(),
  run: [run.status, run.startedAt instanceof Date, run.completedAt instanceof Date],
  why: (await pawl.why(parked.runId)).at instanceof Date,
  missing: kindOf(await told(pawl.runs.get("123"))).slice(0, 3),
  ended: kindOf(await told(pawl.runs.cancel(parked.runId))).slice(0, 3),
  wrong: kindOf(await told(pawl.start("double", 1, { prioritie: 1 }))).slice(0, 3),
  within: within.slice(0, 3),
}));
await pawl.close();
`;

it("pawl/client works without pg, and without anything that only Node has", async () => {
  const double = job({ name: "double", run: (_ctx, { n }: { n: number }) => n * 2 });
  const park = machine({
    name: "park",
    steps: {
      start: (ctx) => ctx.awaitSignal("go", "end", {}),
      end: (ctx) => ctx.done(ctx.awaited[0]?.payload ?? null),
    },
  });
  const fail = job({
    name: "fail",
    maxAttempts: 1,
    run: () => {
      throw new TypeError("no");
    },
  });
  const worker = serve([double, park, fail], { url, logger: silent });
  await worker.ready;
  writeFileSync(join(alone, "program.js"), program);
  writeFileSync(join(alone, "loader.js"), loader);
  const { stdout } = await promisify(execFile)("node", [
    "--experimental-vm-modules",
    "--no-warnings",
    join(alone, "loader.js"),
  ]);
  await worker.stop();
  expect(JSON.parse(stdout)).toEqual({
    lacking: ["undefined", "undefined", "undefined", "undefined"],
    doubled: Array.from({ length: 20 }, (_, n) => n * 2),
    early: "ResultTimeout",
    gone: { by: "browser" },
    same: true,
    failure: [
      true,
      "RunFailed",
      "RunFailed",
      true,
      { name: "TypeError", message: "no", stack: expect.stringContaining("browser.test.ts") as string },
    ],
    pages: [5, 5, true],
    limits: [{ name: "stripe", allowed: 5, periodMs: 1_000, burst: 5, concurrent: null }],
    run: ["completed", true, true],
    why: true,
    missing: [true, "RunNotFound", "RunNotFound"],
    ended: [true, "RunEnded", "RunEnded"],
    wrong: [true, "InvalidOption", "InvalidOption"],
    within: [true, "NotSupported", "NotSupported"],
  });
});
