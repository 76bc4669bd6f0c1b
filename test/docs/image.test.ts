/**
 * The Dockerfile, as far as it can be tested without Docker: its rules are read, its health check is executed, and its
 * list of packages is compared with those of the packages that it serves.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { testServer } from "../support/server.js";
import { root } from "./pages.js";

interface Manifest {
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
}
interface Lock {
  readonly packages: Record<string, Manifest & { dev?: boolean; devOptional?: boolean; resolved?: string }>;
}

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const manifest = (path: string): Manifest => JSON.parse(read(path)) as Manifest;
const lines = read("Dockerfile").replaceAll("\\\n", " ").split("\n");
const instructions = (name: string): string[] =>
  lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length).trim());

describe("the image", () => {
  it("is made of a pinned base and a lockfile, and runs as an ordinary user", () => {
    for (const base of instructions("FROM")) expect(base).toMatch(/^node:\d+\.\d+(\.\d+)?-slim( AS \w+)?$/);
    const runs = instructions("RUN");
    expect(runs.filter((run) => run.includes("npm ci"))).toHaveLength(2);
    expect(runs.join("\n")).not.toMatch(/npm (install|i|add|init)\b|curl|wget/);
    const last = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")));
    expect(last.findIndex((line) => line === "USER node")).toBeGreaterThan(0);
    expect(last.filter((line) => line.startsWith("COPY "))).toEqual([
      "COPY docker/package.json docker/package-lock.json ./",
      "COPY --from=build /source/built node_modules",
    ]);
    expect(last.find((line) => line.startsWith("RUN "))).toContain("npm ci --omit=dev");
  });

  it("has exactly the packages that pawl and @pawl/server depend on", () => {
    const {
      pawl: _ours,
      "@pawl/dashboard": _too,
      ...server
    } = manifest("packages/server/package.json").dependencies!;
    const library = manifest("packages/pawl/package.json").dependencies!;
    expect(manifest("docker/package.json").dependencies).toEqual({ ...library, ...server });
  });

  it("has a lockfile that fits, names no registry, and leaves the compilers out of production", () => {
    const { packages } = JSON.parse(read("docker/package-lock.json")) as Lock;
    const { dependencies, devDependencies } = manifest("docker/package.json");
    expect(packages[""]).toMatchObject({ dependencies, devDependencies });
    const installed = Object.entries(packages).filter(([path]) => path !== "");
    expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
    const production = installed.filter(([, { dev }]) => dev !== true).map(([path]) => path);
    expect(production.filter((path) => /esbuild|tsx$|typescript$/.test(path))).toEqual([]);
  });

  it("is healthy while its server answers, and only then", async () => {
    const [, command = "[]"] = /CMD (\[.*\])$/.exec(instructions("HEALTHCHECK")[0] ?? "") ?? [];
    const [program, ...args] = JSON.parse(command) as string[];
    expect(program).toBe("node");
    const check = async (port: string): Promise<unknown> => {
      const env = { ...process.env, PAWL_PORT: port };
      return (await once(spawn(process.execPath, args, { env, stdio: "inherit" }), "exit"))[0];
    };
    const { url } = await testDatabase();
    const { server, url: at } = await testServer({ database: url, logger: silent });
    const { port } = new URL(at);
    expect(await check(port)).toBe(0);
    await server.close();
    expect(await check(port)).toBe(1);
  });
});
