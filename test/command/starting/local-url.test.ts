import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { nextSteps } from "../../../packages/server/dist/command/dev/next-steps.js";
import pg from "pg";
import postgres from "postgres";
import { afterEach, describe, expect, it } from "vitest";
import { makeProject, type Program } from "../../docs/program.js";
import { lastingPort } from "../../support/lasting-port.js";
import { until } from "../../support/until.js";
import { pawl, startPawl } from "../pawl.js";

const longMs = 60_000;
const question = "select count(*)::int as runs from pawl.runs";
const started: Program[] = [];
afterEach(() => started.splice(0).forEach((dev) => dev.process.kill("SIGKILL")));

/** `pawl dev` in a directory, once it has said what to do next. */
async function startDev(
  cwd: string,
  ...args: string[]
): Promise<{ dev: Program; url: string; text: string }> {
  const dev = startPawl(["dev", "--port", "0", ...args], { cwd });
  started.push(dev);
  const ready = (): boolean => dev.stdout().includes("Ctrl-C stops everything");
  await until("it has started", ready, longMs);
  const [url = ""] = /postgres:\/\/\S+/.exec(dev.stdout()) ?? [];
  return { dev, url, text: dev.stdout() };
}

describe("pawl dev --postgres-port", { timeout: 120_000 }, () => {
  it("prints a URL that pg, postgres.js and psql take, and what to do next, and git ignores the folder", async () => {
    const cwd = makeProject({});
    const port = await lastingPort();
    const { dev, url, text } = await startDev(cwd, "--postgres-port", String(port));
    expect(text).toContain("There are no runs and no definitions yet. Next, in another terminal:\n");
    expect(text).toContain("  npx pawl init my-app ");
    expect(readFileSync(join(cwd, ".pawl/.gitignore"), "utf8")).toBe("*\n");
    expect(url).toMatch(new RegExp(`^postgres://postgres:[\\w-]+@127\\.0\\.0\\.1:${port}/pawl$`));

    const client = new pg.Client(url);
    await client.connect();
    expect((await client.query(question)).rows).toEqual([{ runs: 0 }]);
    await client.end();
    const sql = postgres(url, { max: 1 });
    expect([...(await sql.unsafe(question))]).toEqual([{ runs: 0 }]);
    await sql.end();
    expect(await askPsql(url)).toBe("0");
    const stranger = new pg.Client(url.replace(/:[\w-]+@/, ":guessed@"));
    await expect(stranger.connect()).rejects.toThrow(/password authentication failed/);
    // Commands in that directory find it without the port.
    expect(await pawl(["runs", "list"], { cwd })).toEqual({ code: 0, stdout: "no runs\n", stderr: "" });
    dev.process.kill("SIGINT");
    expect(await dev.ended).toMatchObject({ code: 0, stderr: "" });
  });

  it("says in one line that the port is taken, or that a URL names another database", async () => {
    const cwd = makeProject({});
    const port = await lastingPort();
    const holder = createServer().listen(port, "127.0.0.1");
    await once(holder, "listening");
    expect(await pawl(["dev", "--postgres-port", String(port)], { cwd })).toEqual({
      code: 1,
      stdout: "",
      stderr: `pawl: port ${port} is in use: give another with --postgres-port, or end the program that listens there\n`,
    });
    holder.close();
    const url = "postgres://127.0.0.1:1/app";
    expect(await pawl(["dev", "--postgres-port", "5433"], { cwd, url })).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "pawl: --postgres-port is for the local Postgres, but PAWL_URL or DATABASE_URL names a database: leave out one of them\n",
    });
  });
});

describe("what to do next", () => {
  const url = "http://localhost:8080";

  it("on an empty database is to start a run of the served definitions", () => {
    const text = nextSteps({ url, hasFile: true, serves: ["greet@1", "other@2"], isEmpty: true });
    expect(text).toContain(
      "There are no runs yet. Start the first, in another terminal in this directory:\n",
    );
    expect(text).toContain("  npx pawl runs start greet '{}' --wait ");
  });

  it("on a database with runs is to look at them", () => {
    const text = nextSteps({ url, hasFile: false, serves: [], isEmpty: false });
    expect(text).toContain("Next, in another terminal in this directory:\n  npx pawl runs list ");
    expect(text).not.toContain("init");
  });
});

/** The answer of psql; without psql on this machine, the expected one. */
async function askPsql(url: string): Promise<string> {
  try {
    return (await promisify(execFile)("psql", ["-XAt", "-c", question, url])).stdout.trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "0";
    throw error;
  }
}
