/**
 * `npm run release:check`: what a user gets. All packages are packed, installed by npm in empty projects,
 * and used there. Everything comes from this checkout; there is no network.
 */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requireBuild } from "../support/built.js";
import { makeFolder, pack, type Packed, packageFolders, Project } from "./project.js";
import { openRegistry, type Registry } from "./registry.js";

requireBuild();
const place = makeFolder("check");
const packed: Packed[] = await Promise.all(packageFolders.map((folder) => pack(folder, place)));
const published = packed.map(({ manifest }) => manifest.name);
let registry: Registry;
let project: Project;

beforeAll(async () => {
  registry = await openRegistry(packed);
  mkdirSync(join(place, "empty"));
  project = new Project(join(place, "empty"), registry.url);
  await project.run("npm", "init", "-y");
  await project.run("npm", "install", ...published, "tsx");
});
afterAll(async () => {
  await registry.close();
  rmSync(place, { recursive: true, force: true });
});

describe.each(packed)("the tarball of $manifest.name", ({ manifest, files }) => {
  it("has a README, a license, keywords and a description, and no tests or build state", () => {
    expect(files).toEqual(expect.arrayContaining(["README.md", "LICENSE", "package.json"]));
    expect(manifest.license).toBe("MIT");
    expect(manifest.keywords?.length).toBeGreaterThan(2);
    expect(manifest.description?.length).toBeGreaterThan(20);
    expect(
      files.filter((file) => /(^|\/)(test|node_modules)\/|\.test\.|tsbuildinfo|\.env|\.pawl/.test(file)),
    ).toEqual([]);
  });

  it("has no address of a registry and no path of this machine", () => {
    const own = readFileSync(join(project.folder, "node_modules", manifest.name, "package.json"), "utf8");
    expect(own).not.toMatch(/file:|link:|workspace:|https?:\/\//);
  });
});

describe("an empty project with all packages", () => {
  it("has each of them as packed", () => {
    for (const { manifest, files } of packed) {
      const folder = join(project.folder, "node_modules", manifest.name);
      const installed = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
        (entry) => entry.isFile() && !entry.parentPath.includes("/node_modules/", folder.length),
      );
      expect(installed).toHaveLength(files.length);
    }
  });

  it("imports and requires every entry point", async () => {
    const entries = packed.flatMap(({ manifest }) =>
      Object.keys(manifest.exports).map((path) => join(manifest.name, path)),
    );
    expect(entries.length).toBeGreaterThan(8);
    const modules = entries.filter((entry) => !entry.endsWith(".json"));
    writeFileSync(
      join(project.folder, "all.mjs"),
      `${modules.map((entry) => `await import(${JSON.stringify(entry)});`).join("\n")}\nconsole.log("imported");\n`,
    );
    writeFileSync(
      join(project.folder, "all.cjs"),
      `${entries.map((entry) => `require(${JSON.stringify(entry)});`).join("\n")}\nconsole.log("required");\n`,
    );
    expect(await project.run("node", "all.mjs")).toBe("imported\n");
    expect(await project.run("node", "all.cjs")).toContain("required\n");
  });

  it("has the command, which serves API and dashboard", async () => {
    expect(await project.run("npx", "pawl", "--version")).toBe(`${packed[0]?.manifest.version}\n`);
    await project.during(
      ["npx", "pawl", "dev", "--port", "0"],
      "Ctrl-C stops everything",
      async (printed) => {
        const [, server = ""] = /^server\s+(\S+)$/m.exec(printed) ?? [];
        expect(await (await fetch(`${server}/healthz`)).json()).toEqual({ status: "ok" });
        expect(await (await fetch(`${server}/`)).text()).toContain("<title>");
        expect(await project.run("npx", "pawl", "runs", "list")).toBe("no runs\n");
      },
    );
  });
});

describe("a project of pawl init", () => {
  it("installs, checks its types, passes its test, and runs its worker and its script", async () => {
    await project.run("npx", "pawl", "init", "../made");
    const made = new Project(join(place, "made"), registry.url);
    await made.run("npm", "install");
    await made.run("npm", "run", "check");
    expect(await made.run("npm", "test")).toMatch(/^# pass 1$/m);
    await made.during(["npm", "run", "worker"], "serving", async () => {
      expect(await made.run("npm", "start")).toContain("{ userId: 42, welcomed: true }");
    });
    await made.during(
      ["npm", "run", "dev", "--", "--port", "0"],
      "Ctrl-C stops everything",
      async (printed) => {
        expect(printed).toContain("serves send-mail@1, signup@1 of src/definitions.ts");
        expect(await made.run("npx", "pawl", "runs", "list")).toMatch(/signup@1 +completed/);
      },
    );
  });
});
