import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { job, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import pg from "pg";
import { afterAll, describe, expect, inject, it } from "vitest";
import { root } from "../docs/pages.js";
import { runProgram } from "../docs/program.js";
import { until } from "../support/until.js";

const directory = mkdtempSync(join(tmpdir(), "pawl-testing-law-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const work = job({ name: "work", run: (_ctx, n: number) => n * 2 });
const url = inject("databaseUrl");

async function databases(): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ datname: string }>("select datname from pg_database");
  await client.end();
  return rows.map(({ datname }) => datname);
}

const nameOf = (address: string): string => new URL(address).pathname.slice(1);

describe("testPawl", () => {
  it("gives each test a database of its own, and takes it away", async () => {
    const [one, other] = await Promise.all([
      testPawl({ url, definitions: [work] }),
      testPawl({ url, definitions: [work] }),
    ]);
    const { runId } = await one.pawl.start(work, 21);
    expect(await one.pawl.result(runId)).toBe(42);
    expect((await one.pawl.runs.list()).runs).toHaveLength(1);
    expect((await other.pawl.runs.list()).runs).toEqual([]);
    expect(await databases()).toEqual(expect.arrayContaining([nameOf(one.url), nameOf(other.url)]));
    await Promise.all([one.close(), other.close()]);
    await one.close();
    const left = await databases();
    expect(left).not.toContain(nameOf(one.url));
    expect(left).not.toContain(nameOf(other.url));
    await expect(one.drain()).rejects.toThrow("this test was closed");
    await expect(one.crash()).rejects.toThrow("this test was closed");
  });

  it("closes although a step does not end", async () => {
    const t = await testPawl({ url });
    let signal: AbortSignal | undefined;
    const endless = job({
      name: "endless",
      run: (ctx) => {
        ({ signal } = ctx);
        return new Promise<void>(() => {});
      },
    });
    await t.serve([endless]);
    await t.pawl.start(endless);
    await until("it is executed", () => signal !== undefined);
    await t.close();
    expect(signal?.aborted).toBe(true);
    expect(await databases()).not.toContain(nameOf(t.url));
  });

  it("closes although a transaction is open, or is just being opened", async () => {
    const t = await testPawl({ url });
    let opened = 0;
    const slow = workflow({
      name: "slow",
      run: ({ step }) =>
        step.transaction("slow", async (tx) => {
          opened++;
          await tx.query("select pg_sleep(600)");
          return null;
        }),
    });
    await t.serve([slow]);
    await t.pawl.start(slow);
    await until("a transaction is open", () => opened === 1);
    await t.pawl.start(slow);
    await t.close();
    expect(await databases()).not.toContain(nameOf(t.url));
  });

  it("refuses definitions that cannot be served, and goes on", async () => {
    await expect(testPawl({ url, definitions: [work, work] })).rejects.toThrow("got work@1 twice");
    const other = job({ name: "other", run: () => 1 });
    const t = await testPawl({ url, definitions: [work] });
    await expect(t.serve([other], { queues: { elsewhere: 1 } })).rejects.toThrow('runs on queue "default"');
    const { runId } = await t.pawl.start(work, 1);
    await t.drain();
    expect(await t.pawl.result(runId)).toBe(2);
    await t.close();
  });

  it("closes by itself at the end of its scope", async () => {
    const t = await testPawl({ url });
    await t[Symbol.asyncDispose]();
    expect(await databases()).not.toContain(nameOf(t.url));
  });

  it("drops what killed tests have left, and nothing else", async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const left = `pawl_test_${(Date.now() - 3_600_000).toString(36)}_dead`;
    const young = `pawl_test_${Date.now().toString(36)}_young`;
    const used = `pawl_test_${(Date.now() - 3_600_000).toString(36)}_used`;
    for (const name of [left, young, used]) await client.query(`create database "${name}"`);
    const address = new URL(url);
    address.pathname = used;
    const user = new pg.Client({ connectionString: address.href });
    await user.connect();
    // A process that has not made any test before.
    const program = write(
      "left.mjs",
      `import { testPawl } from "pawl/testing";\nawait (await testPawl({ url: process.env.SERVER })).close();\n`,
    );
    expect(await runProgram(program, { env: { SERVER: url } })).toMatchObject({ code: 0, stderr: "" });
    const names = await databases();
    expect(names).not.toContain(left);
    expect(names).toEqual(expect.arrayContaining([young, used]));
    await user.end();
    for (const name of [young, used]) await client.query(`drop database "${name}" with (force)`);
    await client.end();
  });

  it("says what to do if there is no Postgres", async () => {
    const hooks = `export async function resolve(name, context, next) {
      if (name !== "@pawl/local-postgres") return next(name, context);
      throw Object.assign(new Error("it is not installed"), { code: "ERR_MODULE_NOT_FOUND" });
    }`;
    const program = write(
      "alone.mjs",
      `import { register } from "node:module";
register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hooks)}));
const { testPawl } = await import("pawl/testing");
await testPawl();
`,
    );
    const { code, stderr } = await runProgram(program);
    expect(code).toBe(1);
    expect(stderr).toContain(
      "testPawl found no Postgres; run npm install --save-dev @pawl/local-postgres, or pass the url",
    );
  });

  it("refuses what is no URL, and says that a server cannot be reached", async () => {
    await expect(testPawl({ url: "localhost" })).rejects.toThrow(
      "url must be a string that begins with postgres://",
    );
    await expect(testPawl({ url: "postgres://127.0.0.1:1/none" })).rejects.toThrow("cannot be used");
  });
});

function write(name: string, text: string): string {
  if (!existsSync(join(directory, "node_modules"))) {
    symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
    writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));
  }
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}
