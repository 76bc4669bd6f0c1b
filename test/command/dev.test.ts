import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeProject, type Program } from "../docs/program.js";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { pawl, startPawl } from "./pawl.js";

const longMs = 60_000;
const definitions = `
import { job, NonRetryable } from "pawl";
import { greeting } from "./greeting.js";

export const greet = job({
  name: "greet",
  run: (_ctx, input: { name: string }) => {
    if (input.name === "") throw new NonRetryable("nobody is there");
    return \`\${greeting}, \${input.name}!\`;
  },
});
`;
const files = { "definitions.ts": definitions, "greeting.ts": 'export const greeting: string = "Hello";\n' };

let started: Program | undefined;
afterEach(() => started?.process.kill("SIGKILL"));

function startDev(cwd: string, url?: string, ...args: string[]): Program {
  started = startPawl(["dev", "--watch", "definitions.ts", "--port", "0", ...args], {
    cwd,
    ...(url === undefined ? {} : { url }),
  });
  return started;
}

const printed = (dev: Program, text: string): Promise<string> =>
  until(`it prints ${text}`, () => (dev.stdout().includes(text) ? dev.stdout() : null), longMs);

const greet = (cwd: string, url?: string): Promise<string> =>
  pawl(["runs", "start", "greet", '{"name":"Ada"}', "--wait"], {
    cwd,
    ...(url === undefined ? {} : { url }),
  }).then(({ stdout, stderr }) => stdout + stderr);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("pawl dev", () => {
  it(
    "makes a local Postgres, serves a file, and Ctrl-C ends all of it but the data",
    { timeout: 120_000 },
    async () => {
      const project = makeProject(files);
      const dev = startDev(project);
      const text = await printed(dev, "Ctrl-C stops everything");
      expect(text).toContain('postgres  .pawl/postgres (local), schema "pawl" at version 2\n');
      expect(text).toContain("worker    serves greet@1 of definitions.ts\n");
      const [, server = ""] = /^server {4}(\S+)$/m.exec(text) ?? [];
      expect(await (await fetch(`${server}/healthz`)).json()).toEqual({ status: "ok" });
      // Another call in the same directory finds the same database.
      expect(await greet(project)).toBe('"Hello, Ada!"\n');
      const postmaster = Number(
        readFileSync(join(project, ".pawl/postgres/postmaster.pid"), "utf8").split("\n", 1)[0],
      );
      expect(isAlive(postmaster)).toBe(true);

      dev.process.kill("SIGINT");
      const { code, stderr } = await dev.ended;
      expect([code, stderr]).toEqual([0, ""]);
      expect(isAlive(postmaster)).toBe(false);
      expect(existsSync(join(project, ".pawl/postgres/postmaster.pid"))).toBe(false);
      expect(existsSync(join(project, ".pawl/postgres/PG_VERSION"))).toBe(true);
      await expect(fetch(`${server}/healthz`)).rejects.toThrow();
    },
  );
});

describe("pawl dev on a database of your own", async () => {
  const { url, sql } = await testDatabase({ empty: true });

  it(
    "migrates it, serves what a changed file exports, and goes on with the old code while it is broken",
    { timeout: 120_000 },
    async () => {
      const project = makeProject(files);
      const dev = startDev(project, url);
      await printed(dev, "worker    serves greet@1 of definitions.ts\n");
      expect(await greet(project, url)).toBe('"Hello, Ada!"\n');

      // What the file imports counts, too.
      writeFileSync(join(project, "greeting.ts"), 'export const greeting: string = "Good morning";\n');
      await printed(dev, "worker    changed: now serves greet@1 of definitions.ts\n");
      expect(await greet(project, url)).toBe('"Good morning, Ada!"\n');

      writeFileSync(join(project, "greeting.ts"), "export const greeting: string = ;\n");
      await printed(
        dev,
        'worker    greeting.ts:1:33: Unexpected ";"; the previous code keeps running until you fix this\n',
      );
      expect(await greet(project, url)).toBe('"Good morning, Ada!"\n');

      writeFileSync(join(project, "greeting.ts"), 'export const greeting: string = "Good night";\n');
      await until("it serves again", () => dev.stdout().split("changed: now serves").length === 3, longMs);
      expect(await greet(project, url)).toBe('"Good night, Ada!"\n');

      dev.process.kill("SIGTERM");
      expect(await dev.ended).toMatchObject({ code: 0, stderr: "" });
      // No worker, no claim and no connection is left.
      expect(await sql("select id from workers")).toEqual([]);
      await until("all connections are closed", async () => {
        const rows = await sql(
          "select pid from pg_stat_activity where datname = current_database() and application_name = 'pawl'",
        );
        return rows.length === 0;
      });
    },
  );
});
